/** Runs the conversations of `fixture.ts`, then recorded ones. See the README in this folder. */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { FIXTURE } from './fixture.js';
import { type ReplayedTurn, ConversationRunner } from './conversation-runner.js';
import { readConversations } from './read-conversations.js';
import { count, describeRefusals, describeTurn, OUTCOMES, reasons } from './report.js';

const [file] = process.argv.slice(2);

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
const runner = app.get(ConversationRunner);

for (const conversation of FIXTURE) {
  console.log(`\n${conversation.id}\n`);
  for (const turn of await runner.run(conversation)) console.log(describeTurn(turn));
}

const recorded = file === undefined ? [] : readConversations(file);
if (recorded === null) console.log(`${file} does not exist.`);
else if (recorded.length > 0) {
  console.log(`The conversations of ${file}: what the plan would have refused\n`);
  const all: ReplayedTurn[] = [];
  for (const conversation of recorded) {
    const turns = await runner.run(conversation);
    for (const line of describeRefusals(conversation.id, turns)) console.log(line);
    all.push(...turns);
  }
  console.log(`\n${recorded.length} conversations, ${all.length} turns. Calls by tool and outcome:`);
  console.table(count(all), OUTCOMES);
  console.log(`Requirements of the steps:\n${reasons().join('\n')}`);
  console.log(
    '\nThe recorded model did not receive the refusals. A live model receives their message and can correct itself.',
  );
}
await app.close();
