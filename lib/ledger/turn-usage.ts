import { type TokenUsage } from '../common/token-usage.js';
import { type StateChange } from './state.store.js';

/** The tokens that models took for a turn, over all its attempts (FIX-15). */
export interface SpentTokens extends TokenUsage {
  /** By who asked the models: `router`, `intents`, `evaluate`, `summarizer`. */
  readonly roles: Readonly<Record<string, TokenUsage>>;
  /**
   * By iteration and intent, before and after its first step: the most that one attempt counted. An attempt that runs the same
   * code over stored results counts the same tokens again. Absent in a settlement.
   */
  readonly places?: Readonly<Record<string, TokenUsage>>;
}

/**
 * The tokens that an attempt records with a write, also when the attempt fails later (FIX-15). Both parts are totals of the
 * turn so far, so a write that comes twice counts once.
 */
export interface TurnSpending {
  /** Replaces the `usage` of the turn. */
  readonly usage: SpentTokens;
  /** Counts the tokens for the session. Left out when its namespace was reset since the turn was claimed first. */
  readonly change?: StateChange;
}
