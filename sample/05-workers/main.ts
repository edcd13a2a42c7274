/** One process of the application. ROLE selects its role, as in a deployment. */
import 'reflect-metadata';
import { ConsoleLogger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type ProcessRole } from 'nestjs-agent-sessions';
import { AppModule } from './app.module.js';
import { parentEnded, notifyParent } from './parent-process.js';
import { mountQueueBoard } from './queue-board.js';
import { SELF } from './worker-notes.service.js';

const { ROLE = 'both', PORT = '3000', QUEUES_TOKEN } = process.env;
const module = AppModule.as(ROLE as ProcessRole);
const logger = new ConsoleLogger({ prefix: SELF.name, logLevels: ['warn', 'error', 'fatal'] });

const url = ROLE === 'work' ? await work() : await listen();
// End with the parent process, like a process manager's SIGTERM.
notifyParent({ url });
void parentEnded().then(() => process.kill(process.pid, 'SIGTERM'));

async function work(): Promise<undefined> {
  const app = await NestFactory.createApplicationContext(module, { logger });
  app.enableShutdownHooks([], { useProcessExit: true });
}

async function listen(): Promise<string> {
  const app = await NestFactory.create(module, { logger });
  app.enableShutdownHooks([], { useProcessExit: true });
  if (QUEUES_TOKEN) await mountQueueBoard(app, QUEUES_TOKEN);
  await app.listen(PORT);
  return (await app.getUrl()).replace('[::1]', 'localhost');
}
