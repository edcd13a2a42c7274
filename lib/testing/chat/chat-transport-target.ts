import { type INestApplication, type INestApplicationContext } from '@nestjs/common';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type RequestedCall } from './chat-client.js';
import { type ScriptedModel } from '../../chat/scripted-model.js';

/** The application that `describeChatTransport` tests. */
export interface ChatTransportTarget {
  /**
   * Starts the application on a port, with this store. Each run must give the same answers. The tests close the
   * application.
   */
  readonly start: (store: SessionsAdapter) => Promise<INestApplication>;
  /** Starts a process that runs the turns, with role `work`; `start` then has role `submit`. Default: none. */
  readonly startWorker?: (store: SessionsAdapter) => Promise<INestApplicationContext>;
  /** Opens the store, once for each of both. Default: one memory store for each test. */
  readonly store?: () => SessionsAdapter;
  /** The messages of the user, in order. */
  readonly messages: readonly string[];
  /** The model. Required if it answers the same prompt with different words. Default: none. */
  readonly model?: Pick<ScriptedModel, 'calls'>;
  /** Decides about tool calls that need approval. Default: approves all. */
  readonly approve?: (call: RequestedCall) => boolean;
  /**
   * Returns the idempotency keys that tools have given to other systems so far. After a kill, a tool may use a key
   * again, but not another one. Default: keys are not checked.
   */
  readonly keys?: () => Iterable<string>;
  /** The option `protocol` of the chat controller. With 7, no connection may break. Default 7. */
  readonly protocol?: 6 | 7;
  /** The path of the chat controller. Default `/chat`. */
  readonly path?: string;
  /** Headers of all requests, for the guards. Default: none. */
  readonly headers?: Record<string, string>;
  /** Loads the client. Default: `() => import('ai')`. */
  readonly sdk?: () => Promise<object>;
  /** Time limit of each test in milliseconds. Default 120,000. */
  readonly timeoutMs?: number;
}
