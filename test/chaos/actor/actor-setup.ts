import { type ProcessRole } from 'nestjs-agent-sessions';
import { type StoreOptions } from '../../support/connections.js';
import { type QueuePlace } from '../../support/queues.js';
import { type Load } from './load.js';

/** How an actor is told what to do and where. */
export interface ActorSetup {
  /** Of this life: `worker-2.3`. */
  readonly process: string;
  /** Where its history goes. */
  readonly folder: string;
  readonly role: ProcessRole;
  readonly store: StoreOptions;
  /** Left out: in its process. */
  readonly queue?: QueuePlace;
  /** Of the orchestrator. */
  readonly version: string;
  readonly leaseMs: number;
  /** After how many lost attempts a turn fails. */
  readonly maxLost: number;
  /** What it submits; left out: nothing. */
  readonly load?: Load;
}

/** What an actor tells: that it runs, and that it submits nothing any more. */
export type ActorMessage = 'ready' | 'quiet';

/** What it is told: to submit nothing any more. */
export type ActorOrder = 'be quiet';
