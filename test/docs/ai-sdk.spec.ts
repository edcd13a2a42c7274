import { Chat } from '@ai-sdk/react';
import { DefaultChatTransport } from 'ai';
import { shopAssistant } from '../../sample/06-ai-chat/provider/shop-assistant.js';
import { startProvider } from '../support/scripted-provider.js';
import { PageApplication } from './page-application.js';
import { read } from './pages.js';

const OPENAI = "import { openai } from '@ai-sdk/openai';\n";
const [, agent = ''] = /```ts\n(import .*?export class AppModule {}\n)```/s.exec(read('docs/ai-sdk.md')) ?? [];

/** Starts the application in its own folder, where the module creates its database. */
const MAIN = `
  import 'reflect-metadata';
  import { NestFactory } from '@nestjs/core';
  process.chdir(import.meta.dirname);
  const { AppModule } = await import('./app.module.js');
  await (await NestFactory.create(AppModule, { logger: ['error'] })).listen(process.env.PORT);
`;

/** The names of test/docs/yours.ts. The models need no account. */
const yours = (baseURL: string): string => `
  import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
  export const openai = createOpenAICompatible({ name: 'scripted', baseURL: '${baseURL}' });
  export const orders = { find: (id) => ({ id, item: 'a lamp', euros: 40, status: 'shipped' }) };
  export class AuthGuard {
    canActivate(context) {
      context.switchToHttp().getRequest().user = { id: 'ann' };
      return true;
    }
  }
`;

describe('docs/ai-sdk.md', () => {
  it('AIS-22 runs the agent of the page, and answers a Chat of the AI SDK', async () => {
    const provider = await startProvider(shopAssistant);
    expect(agent).toContain(OPENAI);
    const application = await PageApplication.start(
      new Map([
        ['yours.ts', yours(provider.baseURL)],
        ['app.module.ts', agent.replace(OPENAI, "import { AuthGuard, openai, orders } from './yours.js';\n")],
        ['main.ts', MAIN],
      ]),
    );
    const api = `${application.url}/api/chat`;
    const chat = new Chat({ id: 'chat-1', transport: new DefaultChatTransport({ api }) });

    await chat.sendMessage({ text: 'Where is order 7?' });

    const [, answer] = chat.messages;
    expect(answer.parts.map(({ type }) => type)).toContain('tool-findOrder');
    expect(answer.parts.at(-1)).toMatchObject({ text: 'Sure. Order 7, a lamp for 40 euros, is shipped.' });
    const { messages } = (await (await fetch(`${api}/chat-1/messages`)).json()) as { messages: object[] };
    expect(messages).toEqual(JSON.parse(JSON.stringify(chat.messages)));
  }, 120_000);
});
