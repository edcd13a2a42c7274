import { type SessionsError } from '../common/sessions.error.js';
import { type JsonObject } from '../common/json.js';
import { type NewMessage } from '../ledger/conversation.store.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type NewTurnEvent } from '../ledger/turn-event.js';
import { type ClaimedTurn, type ClaimRequest, type TurnSettlement, type TurnWait } from '../ledger/turn.store.js';
import { type StoredStep } from '../ledger/turn-step.js';
import { type TurnSpending } from '../ledger/turn-usage.js';
import { type Turn } from '../ledger/turn.js';

/** An orchestrator that this process can run turns for. */
export interface RunnableOrchestrator {
  readonly version: string;
}

/** What an attempt may do while it runs. */
export interface TurnControl {
  /** Aborted when the turn is cancelled, this process stops, or the lease is lost. */
  readonly signal: AbortSignal;
  readonly telemetry: Telemetry;
  /** Bytes that a reply, a message or a decision may take as JSON. */
  readonly maxReplyBytes: number;
  /** The promise for the handler: a rejection that it does not await is logged. @param call what the handler called */
  hand<T>(call: string, promise: Promise<T>): Promise<T>;
  /**
   * Renews a lease that has ended by this process's clock: its machine may have slept, and another worker may run the turn
   * (FIX-07). @returns nothing to wait for while the lease lasts; rejects when the turn is lost
   */
  ensureLease(): Promise<void> | undefined;
  /**
   * Stores a step under the attempt's fence.
   * @param before stored in the same commit, unless it is stored already
   * @returns the step that is stored, which may be an earlier one
   */
  saveStep(step: StoredStep, before?: StoredStep): Promise<StoredStep>;
  /** Calls the listener once the turn has settled by this attempt, however it did. */
  onSettled(listener: (turn: Turn) => void): void;
  /** Asked when the attempt fails for good or is cancelled; what it gives is stored with the turn. */
  onUnfinished(account: (status: 'failed' | 'cancelled') => AttemptAccount): void;
  /** Read with every write that can record tokens (FIX-15). */
  onSpending(meter: TurnMeter): void;
  /** Stores the event before long. Never rejects; resolves later than at once when too much waits to be stored. */
  emit(event: NewTurnEvent): Promise<void>;
}

/** What an attempt has to show for itself that did not come to its end. */
export interface AttemptAccount {
  readonly report: JsonObject;
  /** The user's and what was complete: they stay when the turn was interrupted. */
  readonly messages: readonly NewMessage[];
}

/** Counts the tokens of an attempt. */
export interface TurnMeter {
  /** `null` when everything is recorded. */
  read(): TurnSpending | null;
  /** Called once the store has recorded it. */
  recorded(spending: TurnSpending): void;
}

/** How an attempt ends whose handler waits for a signal: nothing of it is held until that comes (TRN-13). */
export class Parked {
  constructor(readonly wait: TurnWait) {}
}

/** What the turn domain asks of those who know what a turn does. */
export abstract class TurnRunner {
  /** By name; `undefined` when this process does not know it. */
  abstract find(orchestrator: string): RunnableOrchestrator | undefined;
  /** All that are known. */
  abstract names(): string[];
  /** What their turns must be claimed with. */
  abstract needs(): Pick<ClaimRequest, 'windows' | 'documents'>;
  /**
   * Runs one attempt.
   * @throws what the handler threw; `permanent: true` on it means that trying again cannot help
   */
  abstract run(claimed: ClaimedTurn, control: TurnControl): Promise<TurnSettlement | Parked>;
  /** Resolves once what follows turns that have settled is done. Never rejects. */
  abstract idle(): Promise<void>;
  /** The error that callers of a failed turn get in place of TurnFailedError, made from the turn's record. */
  abstract readFailure(turn: Turn): SessionsError | undefined;
}
