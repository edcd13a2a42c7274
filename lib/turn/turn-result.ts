import { type JsonValue } from '../common/json.js';
import { type TokenCounts } from '../common/token-counts.js';
import { type TerminalTurnStatus } from '../ledger/turn.js';

// The entry `/client` exports these types. Front ends compile them without Nest.

/**
 * The result of a turn for its caller: plain JSON without internals, which can be returned as an HTTP response.
 * @typeParam Data the type of `data`
 */
export interface TurnResult<Data = JsonValue> {
  readonly id: string;
  readonly sessionId: string;
  readonly status: 'awaiting-input' | 'completed';
  /** The turn's index in this session and orchestrator, from 0. */
  readonly turnIndex: number;
  readonly reply: string | null;
  readonly data?: Data;
  /** The tokens that models used, over all attempts of the turn (FIX-15); absent if none were counted. */
  readonly usage?: TokenCounts;
}

/** How a turn ended, with or without success. Clients receive it in the `settled` event. */
export interface TurnEnd
  extends Pick<TurnResult, 'id' | 'sessionId' | 'usage'>, Partial<Pick<TurnResult, 'turnIndex' | 'data'>> {
  readonly status: TerminalTurnStatus;
  /** `null` if there is no text; absent unless the turn succeeded. */
  readonly reply?: string | null;
  /** The code of the error that a waiting caller receives; absent if the turn succeeded. */
  readonly code?: string;
  /** The id of the turn that superseded this one. */
  readonly supersededBy?: string;
}

/** The signals that a turn waits for. Clients receive it in the `waiting` event (AIS-07). */
export interface TurnWaiting {
  readonly id: string;
  readonly sessionId: string;
  /** The names of the signals, the one that continues the turn first. */
  readonly signals: readonly string[];
  /** When the wait expires, ISO-8601 by the store's clock. Absent: never. */
  readonly until?: string;
}
