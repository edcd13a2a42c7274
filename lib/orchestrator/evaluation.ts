import { type JsonValue } from '../common/json.js';

/** What an intent made of one iteration, as `evaluate` and the next iteration see it. */
export interface IntentReply {
  readonly intent: string;
  /** `null` without an answer in text. */
  readonly text: string | null;
  readonly data?: JsonValue;
}

/** What becomes of a turn after an iteration (BOT-05). */
export interface Evaluation {
  /** The turn is done. Default false. */
  readonly satisfied?: boolean;
  /** Where the next iteration goes, instead of asking the route. */
  readonly reassignTo?: string | readonly string[];
  /** For the next iteration: `turn.feedback`. */
  readonly feedback?: string;
}
