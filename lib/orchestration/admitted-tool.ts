import { type OrchestrationState, type ToolOutcome } from './orchestration-state.js';

/** A use that the plan has admitted. It counts from then on; record its outcome when it ends. */
export interface AdmittedTool {
  /** Identifies the use in the session: as given, else a new id. */
  readonly callId: string;
  /** The state after the admission; `null` without a plan. */
  readonly state: OrchestrationState | null;
  /**
   * Records the outcome; again: without effect. `failed` undoes what the use has moved, unless later uses moved on from there.
   * Without an outcome, for example after a crash, the use counts as one that succeeded.
   * @returns the state; `null` without a plan, or when the state is gone
   */
  record(outcome: ToolOutcome): Promise<OrchestrationState | null>;
}
