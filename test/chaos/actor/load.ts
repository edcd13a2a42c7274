import { type WhenBusy } from 'nestjs-agent-sessions';
import { type ScriptChances } from './script.js';

/** What the clients of an actor do. */
export interface Load extends ScriptChances {
  readonly seed: number;
  /** Clients that speak side by side. */
  readonly clients: number;
  readonly sessions: readonly string[];
  /** What a message does to a busy session: one of these, at random. */
  readonly whenBusy: readonly WhenBusy[];
  /** Session of one message that ends each process that runs it; left out: no such message. */
  readonly culprit?: string;
  /** How likely a turn is cancelled a moment after it was submitted. */
  readonly cancel: number;
}
