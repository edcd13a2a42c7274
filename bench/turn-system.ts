import { type ProcessRole } from 'nestjs-agent-sessions';
import { openBullmq } from './bullmq-system.js';
import { openGroupmq } from './groupmq-system.js';
import { openOurs } from './our-system.js';
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

const OPENERS: Readonly<Record<SystemName, (options: SystemOptions) => Promise<TurnSystem>>> = {
  bullmq: openBullmq,
  groupmq: openGroupmq,
  ours: openOurs,
};

export function openSystem(name: SystemName, options: SystemOptions): Promise<TurnSystem> {
  return OPENERS[name](options);
}
