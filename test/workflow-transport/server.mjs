/** A chat on SQLite whose model is in another process, in a separate process of the built package. */
import process from 'node:process';
import 'reflect-metadata';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { tool } from 'ai';
import { z } from 'zod';
import { streamReply } from '../../dist/ai-sdk/index.js';
import { defineOrchestrator, SessionsModule } from '../../dist/index.js';
import { typeormAdapter } from '../../dist/store/typeorm/index.js';

const { port, database, provider } = JSON.parse(process.argv[2]);

const models = createOpenAICompatible({ name: 'scripted', baseURL: provider, includeUsage: true });
const order = (result, needsApproval) =>
  tool({
    inputSchema: z.object({ orderId: z.string() }),
    needsApproval,
    execute: ({ orderId }) => ({ orderId, result }),
  });
const tools = { findOrder: order('shipped', false), refundOrder: order('refunded', true) };
const shop = defineOrchestrator({
  name: 'shop',
  intents: { answer: (turn) => streamReply(turn, { model: models('model'), tools }) },
});

class OpenGuard {
  canActivate() {
    return true;
  }
}

class AppModule {}
Module({
  imports: [
    SessionsModule.forRoot({
      adapter: typeormAdapter({ dataSource: { type: 'better-sqlite3', database } }),
      principal: () => ({ userId: 'ann' }),
      turns: { concurrency: 100, shutdownGraceMs: 200 },
      controllers: { chat: { guards: [OpenGuard], orchestrators: [shop], maxStreamsPerPrincipal: 100 } },
    }),
    SessionsModule.forFeature([shop]),
  ],
})(AppModule);

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error', 'fatal'] });
app.enableShutdownHooks();
await app.listen(port, '127.0.0.1');
process.send('ready');
