/** Plays the conversations of `fixture.ts`, then recorded ones; see the README beside this file. */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { FIXTURE } from './fixture.js';
import { type PlayedTurn, Player } from './player.js';
import { readConversations } from './read-conversations.js';
import { count, describeRefusals, describeTurn, OUTCOMES, reasons } from './report.js';

const [file = '../shared/data/airline-agent.jsonl'] = process.argv.slice(2);

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
const player = app.get(Player);

for (const conversation of FIXTURE) {
  console.log(`\n${conversation.id}\n`);
  for (const turn of await player.play(conversation)) console.log(describeTurn(turn));
}

const recorded = readConversations(file);
if (recorded) {
  console.log(`The conversations of ${file}: what the plan would have refused\n`);
  const all: PlayedTurn[] = [];
  for (const conversation of recorded) {
    const turns = await player.play(conversation);
    for (const line of describeRefusals(conversation.id, turns)) console.log(line);
    all.push(...turns);
  }
  console.log(`\n${recorded.length} conversations, ${all.length} turns. Calls by tool and by what became of them:`);
  console.table(count(all), OUTCOMES);
  console.log(`What the steps ask for:\n${reasons().join('\n')}`);
  console.log('\nThe recorded model did not hear of refusals; one that does gets their text, and can do better.');
} else {
  console.log(`${file} is not there, so these were all. Name a file with recorded conversations to play them.`);
}
await app.close();
