import { SessionsConfigurationError, type SessionsError } from '../common/sessions.error.js';
import { type JsonObject } from '../common/json.js';
import { type NewMessage } from '../ledger/conversation.store.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type NewTurnEvent, type TurnEvent } from '../ledger/turn-event.js';
import { type StateChange } from '../ledger/state.store.js';
import { type ClaimedTurn, type ClaimRequest, type TurnSettlement, type TurnWait } from '../ledger/turn.store.js';
import { type StoredStep } from '../ledger/turn-step.js';
import { type TurnSpending } from '../ledger/turn-usage.js';
import { type Turn } from '../ledger/turn.js';
import { workerMessages } from './worker.messages.js';

/** No orchestrator with this name is registered in this process. */
export function unknownOrchestrator(orchestrator: string, known: readonly string[]): SessionsConfigurationError {
  return new SessionsConfigurationError(workerMessages.unknownOrchestrator(orchestrator, known), {
    unknown: { orchestrator, known },
  });
}

/** An orchestrator that this process can run turns for. */
export interface RunnableOrchestrator {
  readonly version: string;
}

/** The operations that a running attempt offers. */
export interface AttemptHandle {
  /** Aborted when the turn is cancelled, this process stops, or the lease is lost. */
  readonly signal: AbortSignal;
  readonly telemetry: Telemetry;
  /** The maximum size of a reply, a message or a decision as JSON, in bytes. */
  readonly maxReplyBytes: number;
  /** The maximum size of the result of a step as JSON, in bytes. */
  readonly maxStepBytes: number;
  /**
   * Wraps a promise for the handler: a rejection that it does not await is logged. @param call the method that the
   * handler called
   */
  hand<T>(call: string, promise: Promise<T>): Promise<T>;
  /**
   * Renews a lease that has ended by this process's clock: its machine may have slept, and another worker may run the
   * turn (FIX-07). @returns undefined while the lease lasts; rejects when the turn is lost
   */
  ensureLease(): Promise<void> | undefined;
  /**
   * Makes a store call that may be sent twice. Repeats it while the store is unavailable, until the lease ends. @throws
   * TurnStoppedError after the attempt was stopped; TurnFencedError if the session is gone
   */
  write<T>(call: () => Promise<T>): Promise<T>;
  /** @throws TurnStoppedError, or the reason of `signal`, once the attempt is over (DAY-17) */
  assertOpen(): void;
  /** Records where the orchestrator's code threw an error, for the log: `intent refund, step load order` (DAY-17). */
  thrownIn(place: string, error: unknown): void;
  /** Called when the attempt exceeds its time limit; the result is logged: `intent refund, step load order`. */
  onLimit(whatRuns: () => string | undefined): void;
  /** Stores a step under the attempt's fence. @returns the stored step, which may be an earlier one */
  saveStep(step: StoredStep): Promise<StoredStep>;
  /** Calls the function before the handler submits another turn, which waits for it; `null`: nothing to wait for. */
  onChildTurn(before: () => Promise<unknown> | null): void;
  /** Calls the listener once this attempt has settled the turn, with any status. */
  onSettled(listener: (turn: Turn) => void): void;
  /** Called when the attempt fails permanently or is cancelled; its result is stored with the turn. */
  onUnfinished(partialOutcome: (status: 'failed' | 'cancelled') => PartialOutcome): void;
  /** Called when the attempt is cancelled and messages are kept. @param complete returns the settlement to store */
  onKept(complete: (settlement: TurnSettlement) => Promise<TurnSettlement>): void;
  /** Read with every write that can record tokens (FIX-15). */
  onSpending(meter: TurnMeter): void;
  /** Stores the event soon. Never rejects; resolves later if too many bytes wait to be stored. */
  emit(event: NewTurnEvent): Promise<void>;
  /** Stores the events of this attempt that are not stored yet. Never rejects. */
  flush(): Promise<void>;
  /** Returns the stored events of the turn, of all attempts. @throws StoreUnavailableError */
  emitted(): Promise<readonly TurnEvent[]>;
}

/** The part of an uncompleted attempt that is stored with its turn. */
export interface PartialOutcome {
  readonly report: JsonObject;
  /** The user's message and those of completed iterations, which are kept if the turn was interrupted. */
  readonly messages: readonly NewMessage[];
  /** Removes what the turn has stored in the state of its plan (FIX-88). It changes the same document as the tokens. */
  readonly change?: StateChange;
}

/** Counts the tokens of an attempt. */
export interface TurnMeter {
  /** `null` if all tokens are recorded. */
  read(): TurnSpending | null;
  /** Called once the store has recorded the tokens. */
  recorded(spending: TurnSpending): void;
}

/** The result of an attempt whose handler waits for a signal. Nothing is held until the signal arrives (TRN-13). */
export class AwaitingSignal {
  constructor(readonly wait: TurnWait) {}
}

/** Runs turns. The turn domain calls it and does not depend on orchestrators. */
export abstract class TurnRunner {
  /** Returns an orchestrator by name; `undefined` if this process does not have it. */
  abstract find(orchestrator: string): RunnableOrchestrator | undefined;
  /**
   * Returns true if code with more intents has continued the session or the turn (FIX-84): newer code of the same
   * version, or code from before intents were removed.
   */
  abstract isOutgrown(claimed: ClaimedTurn): boolean;
  /** Returns the names of all orchestrators of this process. */
  abstract names(): string[];
  /** Returns the data that turns of these orchestrators must be claimed with. */
  abstract needs(): Pick<ClaimRequest, 'windows' | 'documents'>;
  /**
   * Runs one attempt.
   * @throws what the handler threw; an error with `permanent: true` is not retried
   */
  abstract run(claimed: ClaimedTurn, attempt: AttemptHandle): Promise<TurnSettlement | AwaitingSignal>;
  /** Resolves once background work of settled turns has ended. Never rejects. */
  abstract idle(): Promise<void>;
  /** Recreates the error that callers of a failed turn get instead of TurnFailedError, from the turn's record. */
  abstract readFailure(turn: Turn): SessionsError | undefined;
}

/** @throws SessionsConfigurationError if an option names an orchestrator that is not registered */
export function assertRegistered(option: string, names: readonly string[], runner: TurnRunner): void {
  const unknown = names.find((name) => !runner.find(name));
  if (unknown === undefined) return;
  throw new SessionsConfigurationError(workerMessages.unknownInOption(option, unknown, runner.names()));
}
