import { join } from 'node:path';
import { type ChatMessages } from 'nestjs-agent-sessions/http';
import { ScriptedProvider } from '../../sample/06-ai-chat/provider/scripted-provider.js';
import { shopAssistant } from '../../sample/06-ai-chat/provider/shop-assistant.js';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/running-application.js';
import { SampleProcess } from '../support/sample-process.js';
import { freePort } from '../support/services/server-process.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const POLICY = 'What is your return policy?';
/** The token at which the first answer to `POLICY` is held. */
const HELD_AT = 40;

describe('the AI chat when its process ends', () => {
  const file = join(temporaryFolder(), 'ai-chat.db');
  const held = gate();
  let provider: ScriptedProvider;
  let sample: SampleProcess;
  let cookie: string;

  beforeAll(async () => {
    provider = await ScriptedProvider.start(
      (request) => ({
        ...shopAssistant(request, { requests: 0, repeats: provider.asked.length }),
        before: (token) => (token === HELD_AT ? held.pass() : undefined),
      }),
      { pauseMs: 1 },
    );
    const env = { PROVIDER_URL: provider.baseURL };
    sample = await SampleProcess.start(file, await freePort(), { sample: '06-ai-chat', env });
    [cookie] = (await fetch(sample.url)).headers.getSetCookie();
  });

  afterAll(async () => {
    held.open();
    await sample?.stop('SIGKILL');
    await provider?.stop();
  });

  it('DAY-19 keeps the user when the browser ends', () => {
    expect(cookie).toMatch(/^ai_chat_user=[\w-]{36}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=31536000$/);
  });

  it('DAY-19 starts again by the printed command, continues the answer, and marks it', async () => {
    const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: POLICY }] };
    const lost = send(message).then(
      (text) => text,
      () => 'the connection broke',
    );
    await eventually(() => provider.asked.length === 1);
    await sample.stop('SIGKILL');
    await lost;
    held.open();
    const { url, restartLine } = sample;
    expect(restartLine).toBe(
      `PORT=${new URL(url).port} SESSIONS_DB=${file} PROVIDER_URL=${provider.baseURL} node build/sample/06-ai-chat/main.js`,
    );

    sample = await SampleProcess.restart(sample);

    expect(sample.url).toBe(url);
    // The page sends a message again that it does not know to be accepted: it is one turn.
    expect(await send(message)).toContain('"continued":true');
    expect(await messages()).toMatchObject([
      { id: 'm1', role: 'user' },
      { role: 'assistant', metadata: { continued: true } },
    ]);
  });

  it('DAY-19 does not mark an answer without an interruption', async () => {
    await send({ id: 'm2', role: 'user', parts: [{ type: 'text', text: 'Where is order 7?' }] });
    const answer = (await messages()).at(-1);
    expect(answer).toMatchObject({ role: 'assistant' });
    expect(answer).not.toHaveProperty('metadata');
  });

  async function send(message: object): Promise<string> {
    const headers = { cookie, 'content-type': 'application/json' };
    const response = await fetch(`${sample.url}/api/chat`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ id: 'c1', message }),
    });
    return response.text();
  }

  async function messages(): Promise<ChatMessages['messages']> {
    const response = await fetch(`${sample.url}/api/chat/c1/messages`, { headers: { cookie } });
    return ((await response.json()) as ChatMessages).messages;
  }
});
