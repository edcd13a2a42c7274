import { Logger } from '@nestjs/common';
import { checkInput } from '../common/check-input.js';
import { assertName } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type AgentOrchestration } from './agent-orchestration.js';
import { type AgentRef, agentName } from './agent-ref.js';
import { isInSequence } from './available-tools.js';
import { assertSteps } from './check-steps.js';
import { type OrchestrationAgents } from './orchestration-agents.js';
import { type OrchestrationStep } from './orchestration-config.js';
import { indexOfStep, type OrchestrationProgress, type ToolOutcome } from './orchestration-state.js';
import { ToolUseOptions } from './orchestration.inputs.js';
import { assertOwnCall, type ToolCall, toToolCall } from './tool-call.js';
import { describeMismatch } from './tool-refusal.js';
import { isUnfinished, nextTools } from './tool-sequence.js';

/** The part of a step that defines its sequence. */
export type SequencedStep = Pick<OrchestrationStep, 'name' | 'sequence' | 'resetSequenceOn'>;

/**
 * Tells which tool of a step's sequence comes next in a session. It handles sequences only; `OrchestrationService`
 * handles whole plans.
 *
 * Pass a step as the plan defines it; an invalid one is an InvalidInputError. A session without a state is at the start
 * of every sequence.
 */
export class StepSequencer {
  private readonly logger = new Logger(StepSequencer.name);
  private readonly checked = new WeakSet<object>();

  /** @hidden */
  constructor(
    private readonly agents: OrchestrationAgents,
    private readonly agent?: string,
  ) {}

  /** Returns the sequencer of another agent. */
  of(agent: AgentRef): StepSequencer {
    return new StepSequencer(this.agents, agentName(agent));
  }

  /** Returns true while the step has an unfinished sequence (ORC-20). */
  async hasActiveSequence(step: SequencedStep, sessionId: string): Promise<boolean> {
    return isUnfinished(this.sequenced(step).sequence, await this.indexOf(step, sessionId));
  }

  /** Returns the next tool, the first one of a group; `null` without a sequence, and after its end (ORC-20). */
  async getCurrentSequenceTool(step: SequencedStep, sessionId: string): Promise<string | null> {
    const [tool = null] = await this.getCurrentSequenceTools(step, sessionId);
    return tool;
  }

  /** Returns all tools that may come next: several for a group, and while an optional tool can be skipped (ORC-29). */
  async getCurrentSequenceTools(step: SequencedStep, sessionId: string): Promise<readonly string[]> {
    return nextTools(this.sequenced(step).sequence, await this.indexOf(step, sessionId));
  }

  /**
   * Records a tool use, and advances the sequence if the tool was next, in one operation (ORC-21). The active step does
   * not change.
   * @returns false, and logs a warning, if another tool was next; the use is recorded and the sequence does not move. A
   * call that is repeated with its `callId` returns the same again
   */
  async processTool(
    step: SequencedStep,
    sessionId: string,
    tool: string,
    options: ToolUseOptions = {},
  ): Promise<boolean> {
    const { name, sequence, resetSequenceOn } = this.sequenced(step);
    assertName(tool, 'tool');
    const { outcome = 'succeeded', ...about } = checkInput(ToolUseOptions, options, 'options');
    const call = toToolCall(tool, about);
    const entry = {
      type: 'tool',
      ...call,
      outcome,
      sequenceOf: { name, ...(sequence && { sequence }), ...(resetSequenceOn && { resetSequenceOn }) },
    } as const;
    const { after, effects } = (await this.states.append(sessionId, [entry], { create: true }))!;
    assertOwnCall(after, call);
    const mismatch = describeMismatch(sessionId, effects);
    if (mismatch !== null) this.logger.warn(mismatch);
    return mismatch === null && !wasMismatched(after, call, outcome);
  }

  /**
   * Advances the step's sequence by one item, without recording a use, up to its end.
   * @returns false without a sequence, without a state, or if the sequence is finished
   */
  async advanceSequence(step: SequencedStep, sessionId: string): Promise<boolean> {
    const { name, sequence } = this.sequenced(step);
    if (sequence === undefined) return false;
    const appended = await this.states.append(sessionId, [{ type: 'advance', sequenceOf: { name, sequence } }]);
    return appended?.effects.some(({ type }) => type === 'sequence-advanced') ?? false;
  }

  /**
   * Filters tools by the sequence (ORC-22). Returns those that come next, or all of them without a sequence or after
   * its end. Returns none, and logs a warning, if the next tools are not in the list.
   */
  async filterToolsBySequence(step: SequencedStep, sessionId: string, tools: readonly string[]): Promise<string[]> {
    const index = await this.indexOf(this.sequenced(step), sessionId);
    const next = nextTools(step.sequence, index);
    if (next.length > 0 && !next.some((tool) => tools.includes(tool))) {
      this.logger.warn(`Step ${step.name} requires ${next.join(' or ')} next, which is not available.`);
    }
    return tools.filter((tool) => isInSequence(step, index, tool));
  }

  private async indexOf(step: SequencedStep, sessionId: string): Promise<number> {
    if (step.sequence === undefined) return 0;
    const state = await this.states.read(sessionId);
    return state ? indexOfStep(state, step.name) : 0;
  }

  private sequenced(step: SequencedStep): SequencedStep {
    if (this.checked.has(step)) return step;
    const { name, sequence, resetSequenceOn } = step;
    const fail = (problem: string): never => {
      throw new InvalidInputError('step', `is invalid: ${problem}`);
    };
    assertSteps([{ name, ...(sequence && { sequence }), ...(resetSequenceOn && { resetSequenceOn }) }], fail);
    this.checked.add(step);
    return step;
  }

  private get states(): AgentOrchestration {
    return this.agents.get(this.agent);
  }
}

/** Returns true if the call was recorded before although another tool was next. */
function wasMismatched({ toolHistory }: OrchestrationProgress, { callId }: ToolCall, outcome: ToolOutcome): boolean {
  if (callId === undefined) return false;
  const uses = toolHistory.filter((use) => use.callId === callId && use.turnId === undefined);
  const use = uses.find((each) => each.outcome === outcome) ?? uses.at(-1);
  return use?.mismatched === true;
}
