import { type MessageDraft } from '../ledger/message.js';

/** Returned by a route: the turn needs no (further) intent. */
export const END: unique symbol = Symbol('END');

/** What an answer changes besides its text. */
export interface OutcomeOptions<State = Record<string, unknown>> {
  /** Merged into the state, top-level keys; `undefined` removes a key. Default: nothing changes. */
  readonly state?: Partial<State>;
  /** `completed` says that the conversation is over. Default `awaiting-input`. */
  readonly status?: 'awaiting-input' | 'completed';
  /** JSON for the caller beside the text. Default: none. */
  readonly data?: unknown;
  /**
   * The messages that the turn adds to the conversation after the user's. Default: the reply as one assistant message.
   * System messages at the beginning go before the user's message.
   */
  readonly messages?: readonly MessageDraft[];
}

/** What an intent made of the turn. */
export class TurnOutcome<State = Record<string, unknown>> {
  constructor(
    readonly text: string | null,
    readonly options: OutcomeOptions<State> = {},
  ) {}
}

/** An answer in text, with what else the turn changes. */
export function reply<State = Record<string, unknown>>(
  text: string,
  options?: OutcomeOptions<State>,
): TurnOutcome<State> {
  return new TurnOutcome<State>(text, options);
}

/** A change without an answer in text, for example of messages or status alone. */
export function outcome<State = Record<string, unknown>>(options: OutcomeOptions<State>): TurnOutcome<State> {
  return new TurnOutcome<State>(null, options);
}
