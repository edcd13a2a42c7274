import { type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { type INestApplication, type INestApplicationContext } from '@nestjs/common';
import { type AnyUIMessage } from '../../chat/ui-message.js';
import { LaneReconciler } from '../../turn/lane-reconciler.service.js';
import { ChatClient, type ChatSdk } from './chat-client.js';
import { type ChatTransportTarget } from './chat-transport-target.js';
import { type Kill, type KillableStores } from './killable-stores.js';
import { assertComplete, assertShown, comparable, outlineOf, textsOf } from './shown-answer.js';

/** Runs at a time: less than the default limit of streams for one user. */
const CONCURRENCY = 8;

/** A kill of the worker, or of the worker and the connection. */
export interface KillKind {
  readonly isCut: boolean;
  readonly isStored: boolean;
}

/** The conversations of one test. The first one is undisturbed, and shows what the others must show. */
export class Conversations {
  private readonly api: string;
  /** The messages of the undisturbed conversation. */
  private undisturbed: readonly AnyUIMessage[] = [];
  private readonly earlierKeys: number;

  constructor(
    private readonly target: ChatTransportTarget,
    private readonly sdk: ChatSdk,
    private readonly stores: KillableStores,
    app: INestApplication,
    private readonly worker: INestApplicationContext,
  ) {
    const { path = '/chat' } = target;
    const server = app.getHttpServer() as Server;
    // A busy server closes idle connections while its client begins to use them again.
    server.keepAliveTimeout = 0;
    const { port } = server.address() as AddressInfo;
    this.api = `http://127.0.0.1:${port}/${path.replace(/^\/+/, '')}`;
    this.earlierKeys = this.keys();
  }

  async begin(): Promise<void> {
    this.undisturbed = await this.converse(this.client());
  }

  /** Has a conversation for each write, and kills its worker there. Each answer must be complete. */
  async killEverywhere({ isCut, isStored }: KillKind): Promise<void> {
    const keysOfOne = this.keys() - this.earlierKeys;
    let conversations = 1;
    for (let at = 1; ; at += CONCURRENCY) {
      const writes = Array.from({ length: CONCURRENCY }, (_, index) => at + index);
      const ended = await Promise.allSettled(writes.map((write) => this.killAt(write, isCut, isStored)));
      const killed = ended.map((each) => {
        if (each.status === 'rejected') throw each.reason;
        return each.value;
      });
      conversations += CONCURRENCY;
      if (!killed[0] && at === 1) {
        throw new Error(
          'No worker was killed. `start` must use the given store, and the controller must allow client ids.',
        );
      }
      if (killed.includes(false)) break;
    }
    const [actual, expected] = [this.keys() - this.earlierKeys, keysOfOne * conversations];
    if (actual === expected) return;
    throw new Error(
      `Tools have used ${actual} idempotency keys in ${conversations} conversations. Expected: ${expected}.`,
    );
  }

  /** @returns false if the conversation has fewer writes */
  private async killAt(at: number, isCut: boolean, isStored: boolean): Promise<boolean> {
    const client = this.client();
    const then = (): void => {
      if (isCut) client.cut();
      this.offer();
    };
    this.stores.kill(client.id, { at, isStored, then } satisfies Kill);
    try {
      await this.converse(client);
      if (!isCut && this.target.protocol !== 6 && client.breaks > 0) throw new Error('The connection broke.');
    } catch (error) {
      const { message } = error as Error;
      throw new Error(`Killed ${isStored ? 'after' : 'before'} write ${at}: ${message}`, { cause: error });
    }
    return this.stores.isKilled(client.id);
  }

  /** Sends all messages, and checks what the client shows. @returns its messages */
  private async converse(client: ChatClient): Promise<readonly AnyUIMessage[]> {
    for (const message of this.target.messages) await client.send(message);
    const { messages } = client;
    expect(messages.map(comparable)).toEqual((await client.stored()).map(comparable));
    for (const [index, answer] of messages.entries()) {
      const whole = this.undisturbed.at(index);
      if (whole) expect(outlineOf(answer)).toEqual(outlineOf(whole));
      if (answer.role === 'assistant') assertComplete(answer, this.texts(index));
    }
    return messages;
  }

  private client(): ChatClient {
    const { sdk, api, target } = this;
    const client: ChatClient = new ChatClient({
      sdk,
      api,
      headers: target.headers ?? {},
      approve: target.approve ?? (() => true),
      onShown: (answer) => {
        const index = client.messages.length - 1;
        assertShown(answer, this.texts(index), this.undisturbed.at(index));
      },
    });
    return client;
  }

  /** Returns all valid texts of the message at this index; `null` if they are unknown. */
  private texts(index: number): readonly string[] | null {
    const { model } = this.target;
    if (model) return model.calls.flatMap(({ text, reasoning }) => [text, reasoning]);
    const whole = this.undisturbed.at(index);
    return whole ? textsOf(whole) : null;
  }

  /** Returns the number of distinct keys. */
  private keys(): number {
    return new Set(this.target.keys?.()).size;
  }

  /** Offers the turn of a killed worker to another one at once. */
  private offer(): void {
    void this.worker
      .get(LaneReconciler, { strict: false })
      .notifyDue()
      .catch(() => undefined);
  }
}
