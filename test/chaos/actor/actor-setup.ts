import { type ProcessRole } from 'nestjs-agent-sessions';
import { type StoreOptions } from '../../support/connections.js';
import { type QueuePlace } from '../../support/queues.js';
import { type Load } from './load.js';

/** The setup of an actor. */
export interface ActorSetup {
  /** The name of this process: `worker-2.3`. */
  readonly process: string;
  /** The folder of its history. */
  readonly folder: string;
  readonly role: ProcessRole;
  readonly store: StoreOptions;
  /** Default: a queue in its process. */
  readonly queue?: QueuePlace;
  /** The version of the orchestrator. */
  readonly version: string;
  readonly leaseMs: number;
  /** Number of lost attempts after which a turn fails. */
  readonly maxLost: number;
  /** The load that it submits. Default: none. */
  readonly load?: Load;
}

/** Messages of an actor: it runs, or it no longer submits. */
export type ActorMessage = 'ready' | 'quiet';

/** The order to stop submitting. */
export type ActorOrder = 'be quiet';
