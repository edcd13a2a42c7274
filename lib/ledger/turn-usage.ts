import { type TokenCounts } from '../common/token-counts.js';
import { type StateChange } from './state.store.js';

/** The tokens used by a turn, over all its attempts (FIX-15). */
export interface SpentTokens extends TokenCounts {
  /** The tokens by role: `router`, `intents`, `evaluate`, `summarizer`. */
  readonly roles: Readonly<Record<string, TokenCounts>>;
  /**
   * The tokens by place in the turn: an iteration and intent, before or after its first step. The maximum that any
   * attempt counted there. An attempt that runs the same code over stored results counts the same tokens again, and the
   * maximum shows which of them are already included. Absent in a settlement.
   */
  readonly places?: Readonly<Record<string, TokenCounts>>;
}

/**
 * The tokens that an attempt records with a write, even if the attempt fails later (FIX-15). Both parts are totals of
 * the turn so far, so a repeated write counts once.
 */
export interface TurnSpending {
  /** Replaces the `usage` of the turn. */
  readonly usage: SpentTokens;
  /** Counts the tokens for the session. Absent if its namespace was reset since the first claim of the turn. */
  readonly change?: StateChange;
}
