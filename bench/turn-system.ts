import { type ProcessRole } from 'nestjs-agent-sessions';
import { type Witness } from './witness.js';

export const SYSTEM_NAMES = ['bullmq', 'groupmq', 'ours'] as const;
export type SystemName = (typeof SYSTEM_NAMES)[number];

export interface SystemOptions {
  /** The address of Redis. */
  readonly url: string;
  /** Whether this process submits or runs turns. */
  readonly role: ProcessRole;
  readonly concurrency: number;
  /** Observes all turns in this process. */
  readonly witness: Witness;
}

/** A system that runs no-op turns of sessions: ours, or a peer, used as documented. */
export interface TurnSystem {
  /** Creates the sessions, once for all processes. */
  prepare(sessions: number): Promise<void>;
  /** Resolves when the turn is stored. */
  submit(session: number, turn: number): Promise<void>;
  /** Resolves with the result of the turn. */
  execute(session: number, turn: number): Promise<void>;
  /** Checks the stored data after a load. @throws WrongAnswerError */
  verify(): Promise<void>;
  close(): Promise<void>;
}
