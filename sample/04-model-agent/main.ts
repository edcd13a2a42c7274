/** Shows a short conversation, then starts the server. See the README in this folder. */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { demonstrate } from './demonstration.js';
import { openModels } from './models.js';
import { ScriptedProvider } from './scripted-provider.js';

const { OPENAI_API_KEY, OPENAI_BASE_URL, MODEL = 'gpt-4.1-mini', CHEAP_MODEL = MODEL, PORT = '3000' } = process.env;

const script = OPENAI_API_KEY ? null : await ScriptedProvider.start();
const models = openModels({
  chat: MODEL,
  cheap: CHEAP_MODEL,
  baseURL: script?.baseURL ?? OPENAI_BASE_URL ?? 'https://api.openai.com/v1',
  ...(OPENAI_API_KEY ? { apiKey: OPENAI_API_KEY } : {}),
});
const app = await NestFactory.create(AppModule.with(models), { logger: ['warn', 'error', 'fatal'] });
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(PORT);

await demonstrate(app, script);

if (process.argv.includes('--exit')) {
  await app.close();
  await script?.stop();
} else {
  const url = (await app.getUrl()).replace('[::1]', 'localhost');
  console.log(`
The agent listens on ${url}. Try:

  SESSION=$(curl -s -X POST ${url}/sessions -H 'x-user-id: ann' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')
  TURN=$(curl -s -X POST ${url}/turns/submit -H 'x-user-id: ann' -H "x-session-id: $SESSION" -H 'content-type: application/json' -d '{"input":"Where are orders 7 and 8?"}' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')
  curl -sN ${url}/turns/$TURN/events -H 'x-user-id: ann' -H "x-session-id: $SESSION"
  curl -s ${url}/messages -H 'x-user-id: ann' -H "x-session-id: $SESSION"
`);
}
