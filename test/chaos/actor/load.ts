import { type WhenBusy } from 'nestjs-agent-sessions';
import { type ScriptChances } from './script.js';

/** The load of an actor's clients. */
export interface Load extends ScriptChances {
  readonly seed: number;
  /** Number of concurrent clients. */
  readonly clients: number;
  readonly sessions: readonly string[];
  /** The `whenBusy` policies, chosen at random. */
  readonly whenBusy: readonly WhenBusy[];
  /** The session of one message that kills each process that runs it. Default: no such message. */
  readonly culprit?: string;
  /** The probability that a turn is cancelled shortly after its submit. */
  readonly cancel: number;
}
