import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { AppModule } from './app.module.js';
import { restartCommand } from './restart-command.js';
import { servePage } from './serve-page.js';

const app = await NestFactory.create<NestExpressApplication>(AppModule, { bodyParser: false });
// Larger than the module's limit for inputs, whose error is clearer.
app.useBodyParser('json', { limit: '1mb' });
servePage(app);
// Exit with 0 after an orderly stop, instead of ending by the signal.
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(process.env.PORT ?? 3000);

const url = (await app.getUrl()).replace('[::1]', 'localhost');
console.log(`
The support desk listens on ${url}. Open it in a browser, or stream an answer here:

  curl -N ${url}/ask -H 'x-user-id: ann' -H 'content-type: application/json' -d '{"input":"What is your policy?"}'

To see it resume after a crash, ask for the policy, and run kill -9 ${process.pid}. Then start it again:

  ${restartCommand(url)}
`);
