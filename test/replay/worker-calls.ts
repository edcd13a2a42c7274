import { type ConversationMessage, type ProcessRole, type Turn } from 'nestjs-agent-sessions';
import { type StoreOptions } from '../support/connections.js';
import { type QueuePlace } from '../support/queues.js';

/** The calls of the parent to the worker. A call without an answer is repeated to the next worker. */
export interface WorkerCalls {
  /** Answers as soon as a worker is ready. */
  ping(): Promise<void>;
  /** Submits a turn of a conversation. @returns the turn's id */
  submit(conversation: string, turn: number): Promise<string>;
  /** Answers once the turn has succeeded. */
  settled(turnId: string): Promise<void>;
  read(conversation: string): Promise<StoredConversation>;
}

export interface StoredConversation {
  readonly messages: readonly ConversationMessage[];
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

/** The setup of a worker. */
export interface WorkerSetup {
  readonly file: string;
  /** The folder of its database and its effect log. */
  readonly folder: string;
  /** The store of the conversations. Default: in memory. */
  readonly store?: StoreOptions;
  readonly role: ProcessRole;
  /** The queue. Default: in process. */
  readonly queue?: QueuePlace;
  /** The number of turns that each process runs at a time. Default: that of the queue. */
  readonly concurrency?: number;
}

export const effectFile = 'effects.log';
