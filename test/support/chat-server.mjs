/** A chat on SQLite whose model is in another process, in a separate process of the built package: see chat-server-process.ts. */
import { appendFileSync } from 'node:fs';
import process from 'node:process';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { z } from 'zod';
import { idempotencyKeyOf } from '../../dist/ai-sdk/index.js';
import { streamReplyWith } from '../../dist/ai-sdk/stream-reply.js';
import { defineOrchestrator, SessionsModule } from '../../dist/index.js';
import { typeormAdapter } from '../../dist/store/typeorm/index.js';
import { withMethods } from '../../dist/testing/chat/killable-stores.js';

const { port, database, provider, version = 6, protocol = 7, effects, holdsWrites } = JSON.parse(process.argv[2]);

const sdk =
  version === 7
    ? await import('../ai-7/packages.mjs')
    : { ...(await import('ai')), ...(await import('@ai-sdk/openai-compatible')) };
const models = sdk.createOpenAICompatible({ name: 'scripted', baseURL: provider, includeUsage: true });

const toolsOf = (chat) => {
  const order = (result, needsApproval) =>
    sdk.tool({
      inputSchema: z.object({ orderId: z.string() }),
      needsApproval,
      execute: ({ orderId }, options) => {
        const effect = { chat, call: options.toolCallId, key: idempotencyKeyOf(options) };
        if (effects) appendFileSync(effects, `${JSON.stringify(effect)}\n`);
        return { orderId, result };
      },
    });
  return { findOrder: order('shipped', false), refundOrder: order('refunded', true) };
};

const shop = defineOrchestrator({
  name: 'shop',
  intents: {
    answer: (turn) =>
      streamReplyWith(sdk, holdsWrites ? storingEach(turn) : turn, {
        model: models('model'),
        tools: toolsOf(turn.sessionId),
      }),
  },
});

/** Returns a turn that stores each chunk before the next one is created. */
function storingEach(turn) {
  return { ...turn, emit: async (event) => (await turn.emit(event), turn.flush()) };
}

/** The chats of turns. */
const chatsOfTurns = new Map();
const chatOfHold = ({ sessionId }) => sessionId;
/** The writes of a chat, and how to get the chat from their arguments. */
const WRITES = {
  sessions: { create: ({ id }) => id },
  turns: {
    accept: ({ id, sessionId }) => {
      chatsOfTurns.set(id, sessionId);
      return sessionId;
    },
    signal: (turnId) => chatsOfTurns.get(turnId),
    saveStep: chatOfHold,
    wait: chatOfHold,
    settle: chatOfHold,
  },
  events: { append: chatOfHold },
};

/** Returns the store, with reports of its writes and with chats that stop at one of them. */
function held(adapter) {
  const port = (name) => {
    const methods = Object.entries(WRITES[name]).map(([method, chatOf]) => [
      method,
      (...args) =>
        write(chatOf(...args), method === 'saveStep' ? args[1].name : method, () => adapter[name][method](...args)),
    ]);
    return withMethods(adapter[name], Object.fromEntries(methods));
  };
  return withMethods(adapter, { sessions: port('sessions'), turns: port('turns'), events: port('events') });
}

/** How often each chat has made each write, and the end of the last one. */
const chats = new Map();

/** Makes the writes of a chat one after the other, so that a chat that has stopped writes nothing. */
function write(chat, name, make) {
  const own = chats.get(chat) ?? { counts: new Map(), last: Promise.resolve() };
  chats.set(chat, own);
  const made = own.last.then(async () => {
    const count = (own.counts.get(name) ?? 0) + 1;
    own.counts.set(name, count);
    const place = `${name.replaceAll(' ', '_')}-${count}`;
    if (chat === `before-${place}`) await stop(chat);
    const result = await make();
    process.send({ chat, wrote: place });
    if (chat === `after-${place}`) await stop(chat);
    return result;
  });
  own.last = made.catch(() => undefined);
  return made;
}

function stop(chat) {
  process.send({ chat });
  return new Promise(() => undefined);
}

class OpenGuard {
  canActivate() {
    return true;
  }
}

const adapter = typeormAdapter({ dataSource: { type: 'better-sqlite3', database } });

class AppModule {}
Module({
  imports: [
    SessionsModule.forRoot({
      adapter: holdsWrites ? held(adapter) : adapter,
      principal: () => ({ userId: 'ann' }),
      turns: { concurrency: 500, shutdownGraceMs: 200 },
      controllers: { chat: { protocol, guards: [OpenGuard], orchestrators: [shop], maxStreamsPerPrincipal: 500 } },
    }),
    SessionsModule.forFeature([shop]),
  ],
})(AppModule);

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error', 'fatal'] });
app.enableShutdownHooks();
await app.listen(port, '127.0.0.1');
process.on('disconnect', () => process.exit());
process.send('ready');
