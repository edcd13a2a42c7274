import { type JsonValue } from '../common/json.js';

/** An intent's result in one iteration, as `evaluate` and the next iteration see it. */
export interface IntentReply {
  readonly intent: string;
  /** `null` if the intent gave no text. */
  readonly text: string | null;
  readonly data?: JsonValue;
}

/** Decides how the turn continues after an iteration (BOT-05). */
export interface Evaluation {
  /** Ends the turn. Default false. */
  readonly satisfied?: boolean;
  /** The intents of the next iteration, used instead of calling the route. */
  readonly reassignTo?: string | readonly string[];
  /** Passed to the next iteration as `turn.feedback`. */
  readonly feedback?: string;
}
