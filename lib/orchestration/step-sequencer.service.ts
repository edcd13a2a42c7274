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
import { indexOfStep } from './orchestration-state.js';
import { ToolUseOptions } from './orchestration.inputs.js';
import { assertOwnCall, toToolCall } from './tool-call.js';
import { describeMismatch } from './tool-refusal.js';
import { isUnfinished, nextTools } from './tool-sequence.js';

/** The part of a step that is about its sequence. */
export type SequencedStep = Pick<OrchestrationStep, 'name' | 'sequence' | 'resetSequenceOn'>;

/**
 * Which tool of a step's sequence comes next in a session. It looks at sequences alone; `OrchestrationService` at whole plans.
 *
 * A step is given as the plan has it; a wrong one is an InvalidInputError. A session without a state is at the start of
 * every sequence.
 */
export class StepSequencer {
  private readonly logger = new Logger(StepSequencer.name);
  private readonly checked = new WeakSet<object>();

  /** @hidden */
  constructor(
    private readonly agents: OrchestrationAgents,
    private readonly agent?: string,
  ) {}

  /** The sequences of another agent. */
  of(agent: AgentRef): StepSequencer {
    return new StepSequencer(this.agents, agentName(agent));
  }

  /** False without a sequence, and once it is finished (ORC-20). */
  async hasActiveSequence(step: SequencedStep, sessionId: string): Promise<boolean> {
    return isUnfinished(this.sequenced(step).sequence, await this.indexOf(step, sessionId));
  }

  /** The tool that comes next: of a group the first one. `null` without a sequence, and once it is finished (ORC-20). */
  async getCurrentSequenceTool(step: SequencedStep, sessionId: string): Promise<string | null> {
    const [tool = null] = await this.getCurrentSequenceTools(step, sessionId);
    return tool;
  }

  /** All tools that may come next: several for a group, and before an optional tool is passed over (ORC-29). */
  async getCurrentSequenceTools(step: SequencedStep, sessionId: string): Promise<readonly string[]> {
    return nextTools(this.sequenced(step).sequence, await this.indexOf(step, sessionId));
  }

  /**
   * Records the use of a tool, and moves the sequence when it was the tool's turn, in one operation (ORC-21). The active step stays.
   * @returns false, with a warning, when another tool comes next; the use is recorded and the sequence stays
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
    return mismatch === null;
  }

  /**
   * Advances the step's sequence by one item, whatever tool was used, up to its end. Records no use.
   * @returns false without a sequence, without a state, and when the sequence is finished
   */
  async advanceSequence(step: SequencedStep, sessionId: string): Promise<boolean> {
    const { name, sequence } = this.sequenced(step);
    if (sequence === undefined) return false;
    const appended = await this.states.append(sessionId, [{ type: 'advance', sequenceOf: { name, sequence } }]);
    return appended?.effects.some(({ type }) => type === 'sequence-advanced') ?? false;
  }

  /**
   * What the sequence leaves of the tools (ORC-22): those that come next; all of them without a sequence, and once it is
   * finished. None, with a warning, when those that come next are not among them.
   */
  async filterToolsBySequence(step: SequencedStep, sessionId: string, tools: readonly string[]): Promise<string[]> {
    const index = await this.indexOf(this.sequenced(step), sessionId);
    const next = nextTools(step.sequence, index);
    if (next.length > 0 && !next.some((tool) => tools.includes(tool))) {
      this.logger.warn(`Step ${step.name} needs ${next.join(' or ')} next, which is not available.`);
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
      throw new InvalidInputError('step', `is wrong: ${problem}`);
    };
    assertSteps([{ name, ...(sequence && { sequence }), ...(resetSequenceOn && { resetSequenceOn }) }], fail);
    this.checked.add(step);
    return step;
  }

  private get states(): AgentOrchestration {
    return this.agents.get(this.agent);
  }
}
