import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { AppModule } from './app.module.js';

const app = await NestFactory.create<NestExpressApplication>(AppModule, { bodyParser: false });
// Larger than the module's own limit for inputs, so that its clearer answer comes first.
app.useBodyParser('json', { limit: '1mb' });
// Exits with 0 once everything has stopped in order, instead of dying of the signal.
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(process.env.PORT ?? 3000);

const url = (await app.getUrl()).replace('[::1]', 'localhost');
console.log(`
The support desk listens on ${url}. Try:

  SESSION=$(curl -s -X POST ${url}/sessions -H 'x-user-id: ann' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')
  curl -s -X POST ${url}/turns -H 'x-user-id: ann' -H "x-session-id: $SESSION" -H 'content-type: application/json' -d '{"input":"Where is order 7?"}'
  curl -s ${url}/messages -H 'x-user-id: ann' -H "x-session-id: $SESSION"
`);
