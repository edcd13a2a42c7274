/** A process of a run: an application that accepts turns, runs turns, or both, until it is stopped or killed. */
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SessionsModule, TurnService } from 'nestjs-agent-sessions';
import { adapterOf } from '../../support/connections.js';
import { queueAt } from '../../support/queues.js';
import { HistoryFile } from '../history/history-file.js';
import { recordingStore } from '../history/recording-store.js';
import { Random } from '../random.js';
import { type ActorMessage, type ActorOrder, type ActorSetup } from './actor-setup.js';
import { chaosOrchestrator } from './chaos.orchestrator.js';
import { Client } from './client.js';

const setup = JSON.parse(process.argv[2]) as ActorSetup;
const history = new HistoryFile(setup.folder, setup.process);
process.once('disconnect', () => process.exit(2));

@Module({
  imports: [
    SessionsModule.forRoot({
      adapter: recordingStore(adapterOf(setup.store), history),
      role: setup.role,
      turns: {
        leaseMs: setup.leaseMs,
        // Many faults may end attempts of a turn without being caused by it.
        retry: { attempts: 1000, maxLost: setup.maxLost, backoff: { type: 'fixed', delayMs: 100 } },
        shutdownGraceMs: 1000,
        ...(setup.queue ? { queue: queueAt(setup.queue) } : {}),
      },
    }),
    SessionsModule.forFeature([chaosOrchestrator(setup.version, history)]),
  ],
})
class ActorModule {}

function tell(message: ActorMessage): void {
  // Ignore errors: the parent may have ended.
  process.send?.(message, undefined, undefined, () => undefined);
}

const app = await NestFactory.createApplicationContext(ActorModule, { logger: ['warn', 'error'] });
app.enableShutdownHooks(['SIGTERM']);
const quiet = new AbortController();
process.on('message', (order: ActorOrder) => {
  if (order === 'be quiet') quiet.abort();
});
tell('ready');

if (setup.load) {
  const { load } = setup;
  const random = new Random(load.seed);
  const turns = app.get(TurnService, { strict: false });
  const clients = Array.from(
    { length: load.clients },
    (_, index) => new Client(`${setup.process}-${index}`, turns, history, load, random.fork()),
  );
  const speaking = clients.map((client) => client.speak(quiet.signal));
  if (load.culprit !== undefined) speaking.push(clients[0].crash(load.culprit));
  await Promise.all(speaking);
}
tell('quiet');
