import { type ProcessRole } from 'nestjs-agent-sessions';
import { type Witness } from './witness.js';

export const SYSTEM_NAMES = ['bullmq', 'groupmq', 'ours'] as const;
export type SystemName = (typeof SYSTEM_NAMES)[number];

export interface SystemOptions {
  /** Of Redis. */
  readonly url: string;
  /** What this process does with turns. */
  readonly role: ProcessRole;
  readonly concurrency: number;
  /** Told of everything that runs here. */
  readonly witness: Witness;
}

/** What runs the turns of sessions, turns that do nothing: ours, or a peer as its documentation says to use it. */
export interface TurnSystem {
  /** Makes the sessions, once for all processes. */
  prepare(sessions: number): Promise<void>;
  /** Resolves when the turn is stored. */
  submit(session: number, turn: number): Promise<void>;
  /** Resolves when its result is here. */
  execute(session: number, turn: number): Promise<void>;
  /** Looks at what is stored after everything has run. @throws WrongAnswerError */
  verify(): Promise<void>;
  close(): Promise<void>;
}
