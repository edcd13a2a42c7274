import { Logger } from '@nestjs/common';
import { CONTESTED, untilUncontested } from '../state/until-uncontested.js';
import { type AgentOrchestration, type Appended } from './agent-orchestration.js';
import { applyEntry } from './apply-entry.js';
import { type OrchestrationEffect, type OrchestrationEntry } from './orchestration-entry.js';
import {
  type OrchestrationProgress,
  type OrchestrationState,
  shownProgress,
  type ToolOutcome,
  type ToolUse,
} from './orchestration-state.js';
import { type StepPlan } from './step-plan.js';
import { hasPredicates, type StepPredicates } from './step-predicates.js';
import { assertOwnCall, type ToolCall } from './tool-call.js';
import { describeMismatch, refusalOf } from './tool-refusal.js';

type EvaluatedEntry = Extract<OrchestrationEntry, { type: 'admit' | 'outcome' | 'tool' }>;

/** The result of `OrchestrationService.admitTool`. */
interface AdmittedTool {
  readonly callId: string;
  readonly state: OrchestrationState;
  readonly record: (outcome: ToolOutcome) => Promise<OrchestrationState | null>;
}

/** The progress that the next entry is applied to. It includes the uses of a turn that has not settled. */
interface Known {
  readonly progress: OrchestrationProgress;
  readonly version: number;
}

/** The admissions of one agent's plan in one session (FIX-21). */
export class ToolAdmissions {
  private readonly logger = new Logger('OrchestrationService');

  constructor(
    private readonly states: AgentOrchestration,
    private readonly plan: StepPlan,
    private readonly predicates: StepPredicates,
    private readonly sessionId: string,
  ) {}

  /** @throws ToolNotAllowedError, HandlerError (`TOOL_CALL_CONFLICT`) */
  async admit(call: ToolCall & { readonly callId: string }): Promise<AdmittedTool> {
    const { plan, sessionId } = this;
    const { tool, callId } = call;
    const { signature, onViolation } = plan;
    const entry = { type: 'admit', ...call, plan: signature, onViolation } as const;
    const appended = await this.appendWithFacts(entry, true);
    const { state, after, effects } = appended!;
    assertOwnCall(after, call);
    const isSame = (use: ToolUse): boolean =>
      use.callId === callId && use.turnId === undefined && use.outcome !== 'failed';
    const use = after.toolHistory.find(isSame);
    if (use && onViolation === 'warn') this.logMismatch(effects);
    // A rejected use does not change the state.
    if (!use) throw refusalOf(plan, sessionId, after, tool)!;
    let hasFailed = false;
    const record = async (outcome: ToolOutcome): Promise<OrchestrationState | null> => {
      const recorded = await this.record(callId, outcome);
      const isLost = outcome === 'succeeded' && !hasFailed && recorded !== null && failedOnly(recorded.after, callId);
      hasFailed ||= outcome === 'failed';
      const appended = isLost ? await this.recordAgain(call) : recorded;
      return appended && appended.state;
    };
    return { callId, state, record };
  }

  private record(callId: string, outcome: ToolOutcome): Promise<Appended | null> {
    const entry = { type: 'outcome', callId, outcome, plan: this.plan.signature } as const;
    // Only a failure can activate another step.
    return outcome === 'failed' ? this.appendWithFacts(entry, false) : this.states.append(this.sessionId, [entry]);
  }

  /** Records the success of a use whose id was admitted twice, after the failure of the other use. */
  private async recordAgain(call: ToolCall): Promise<Appended | null> {
    const entry = { type: 'tool', ...call, outcome: 'succeeded', plan: this.plan.signature } as const;
    const appended = await this.appendWithFacts(entry, false);
    if (appended) this.logMismatch(appended.effects);
    return appended;
  }

  private logMismatch(effects: readonly OrchestrationEffect[]): void {
    const mismatch = describeMismatch(this.sessionId, effects);
    if (mismatch !== null) this.logger.warn(mismatch);
  }

  /**
   * Appends an entry with its facts. One round trip; two for a plan with predicates, and one more for each conflict.
   */
  private async appendWithFacts(entry: EvaluatedEntry, create: boolean): Promise<Appended | null> {
    const { states, plan, sessionId } = this;
    if (!hasPredicates(plan)) return states.append(sessionId, [{ ...entry, facts: [] }], { create });
    let known: Known | null = null;
    return untilUncontested(sessionId, async () => {
      known ??= create ? knownFrom(await states.append(sessionId, [], { create })) : await this.read();
      if (!known) return null;
      const { progress, version } = known;
      const now = new Date().toISOString();
      const { progress: state } = applyEntry(progress, states.stamped(entry), now, states.catalog.rules);
      const facts = await this.predicates.facts(plan, { agent: plan.agent, sessionId, state });
      const appended = await states.append(sessionId, [{ ...entry, facts }], { ifVersion: version });
      if (appended?.applied) return appended;
      known = knownFrom(appended);
      return CONTESTED;
    });
  }

  private async read(): Promise<Known | null> {
    const state = await this.states.read(this.sessionId);
    return state && { progress: state, version: state.version };
  }
}

/** Returns true if the history has uses with this id outside of turns, and all of them failed. */
function failedOnly({ toolHistory }: OrchestrationProgress, callId: string): boolean {
  const uses = toolHistory.filter((use) => use.callId === callId && use.turnId === undefined);
  return uses.length > 0 && uses.every(({ outcome }) => outcome === 'failed');
}

function knownFrom(appended: Appended | null): Known | null {
  return appended && { progress: shownProgress(appended.after), version: appended.state.version };
}
