import { type Patch } from '../common/patch.js';
import { type MessageDraft } from '../ledger/message.js';

/** Returned by a route if the turn needs no (further) intent. */
export const END: unique symbol = Symbol('END');

/** Changes and data besides the text of an answer. */
export interface OutcomeOptions<State = Record<string, unknown>> {
  /** Merged into the state by top-level keys; `undefined` removes a key. Default: no change. */
  readonly state?: Patch<State>;
  /** `completed` ends the conversation. Default `awaiting-input`. */
  readonly status?: 'awaiting-input' | 'completed';
  /** JSON for the caller, in addition to the text. Default: none. */
  readonly data?: unknown;
  /**
   * The messages that the turn adds to the conversation after the user's. Default: the reply as one assistant message.
   * Leading system messages go before the user's message.
   */
  readonly messages?: readonly MessageDraft[];
}

/** The result of an intent. */
export class TurnOutcome<State = Record<string, unknown>> {
  constructor(
    readonly text: string | null,
    readonly options: OutcomeOptions<State> = {},
  ) {}
}

/** Creates an answer in text, with optional changes. */
export function reply<State = Record<string, unknown>>(
  text: string,
  options?: OutcomeOptions<State>,
): TurnOutcome<State> {
  return shown(new TurnOutcome<State>(text, options), reply);
}

/** Creates an outcome without a text, for example to change only messages or status. */
export function turnOutcome<State = Record<string, unknown>>(options: OutcomeOptions<State>): TurnOutcome<State> {
  return shown(new TurnOutcome<State>(null, options), turnOutcome);
}

/** Adds the stack of the caller as a hidden property, for errors about the values of the outcome (DAY-17). */
function shown<Outcome extends object>(outcome: Outcome, create: (...args: never[]) => unknown): Outcome {
  Error.captureStackTrace(outcome, create);
  return outcome;
}
