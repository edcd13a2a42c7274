import { type Message, type ProcessRole, type Turn } from 'nestjs-agent-sessions';
import { type StoreOptions } from '../support/connections.js';
import { type QueuePlace } from '../support/queues.js';

/** What the parent asks of the worker. Each may be asked again of the next worker when no answer came. */
export interface WorkerCalls {
  /** Answers as soon as there is a worker. */
  ping(): Promise<void>;
  /** Puts a turn of a conversation into its lane. @returns the turn's id */
  submit(conversation: string, turn: number): Promise<string>;
  /** Answers once the turn has ended well. */
  settled(turnId: string): Promise<void>;
  read(conversation: string): Promise<StoredConversation>;
}

export interface StoredConversation {
  readonly messages: readonly Message[];
  readonly turns: readonly Turn[];
}

export type WorkerMethod = keyof WorkerCalls;

export interface WorkerRequest {
  readonly id: number;
  readonly method: WorkerMethod;
  readonly args: readonly unknown[];
}

export type WorkerMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  | { readonly type: 'error'; readonly id: number; readonly message: string };

/** How a worker is told what to play and where. */
export interface WorkerSetup {
  readonly file: string;
  /** Where it keeps its database and its effect log. */
  readonly folder: string;
  /** Where it keeps the conversations; left out: in its memory. */
  readonly store?: StoreOptions;
  readonly role: ProcessRole;
  /** Left out: in its process. */
  readonly queue?: QueuePlace;
}

export const effectFile = 'effects.log';
