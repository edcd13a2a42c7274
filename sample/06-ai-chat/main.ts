import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { restartCommand } from '../01-support-desk/restart-command.js';
import { AppModule } from './app.module.js';
import { servePage } from './serve-page.js';

const app = await NestFactory.create<NestExpressApplication>(AppModule, {
  bodyParser: false,
  logger: ['warn', 'error', 'fatal'],
});
// The front end sends the whole conversation, with attachments.
app.useBodyParser('json', { limit: '32mb' });
servePage(app);
// Exit with 0 after an orderly stop, instead of ending by the signal.
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(process.env.PORT ?? 3000);

const url = (await app.getUrl()).replace('[::1]', 'localhost');
console.log(`
The chat listens on ${url}. Open it in a browser.

1. Send "How do I send something back?".
2. Kill the server during the answer with kill -9 ${process.pid}, and start it again. The answer continues.
   ${restartCommand(url)}
3. Send "Please refund order 7.", and approve the refund.
`);
