import 'reflect-metadata';
import { memoryAdapter, type SessionsAdapter, StoreUnavailableError } from 'nestjs-agent-sessions';
import { ChatResponses } from '../../lib/http/chat/chat-responses.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { approvalSignal } from '../../lib/chat/user-signals.js';
import { eventually } from '../support/eventually.js';
import { startApplication } from '../support/running-application.js';
import { type ChatApp, type ChatAppOptions, chunksOf, said, startChatApp } from './chat-app.js';
import { startAssistant } from './chat-assistant.js';

const RUN_ID = 'x-workflow-run-id';
const TAIL_INDEX = 'x-workflow-stream-tail-index';

describe('startIndex, as WorkflowChatTransport sends it', () => {
  it('AIS-13 skips the chunks of a response that the client has received', async () => {
    const { app, chunks, run } = await answered();
    expect(chunks.length).toBeGreaterThan(10);
    expect(await resumed(app, `/one/${run}/stream?startIndex=0`)).toEqual(chunks);
    expect(await resumed(app, `/one/${run}/stream?startIndex=7`)).toEqual(chunks.slice(7));
    // Without a chunk, the transport would ask again and again.
    for (const start of [chunks.length - 1, chunks.length, 1000]) {
      expect(await resumed(app, `/one/${run}/stream?startIndex=${start}`)).toEqual([{ type: 'finish', ...finish }]);
    }
    expect((await app.ask('GET', `/one/unknown~0/stream?startIndex=0`)).status).toBe(404);
    expect((await app.ask('GET', `/one/${run}/stream?startIndex=x`)).status).toBe(400);
  });

  it('AIS-13 continues the last answer of a chat', async () => {
    const { app, chunks } = await answered();
    expect(await resumed(app, '/one/one/stream?startIndex=7')).toEqual(chunks.slice(7));
    expect((await app.ask('GET', '/two/two/stream?startIndex=7')).status).toBe(204);
  });

  it('AIS-13 returns only the end if there is no answer to resume', async () => {
    const { app } = await answered();
    for (const path of ['/one/one/stream?startIndex=0', '/two/two/stream?startIndex=0', '/one/stream?startIndex=-4']) {
      expect(await resumed(app, path)).toEqual([{ type: 'finish' }]);
    }
    expect((await app.ask('GET', '/one/stream')).status).toBe(204);
  });

  it('AIS-13 returns a response from its start, with index 0, if the index is negative', async () => {
    const { app, chunks, run } = await answered();
    const response = await app.ask('GET', `/one/${run}/stream?startIndex=-5`);
    // The client adds the index: 4 + 1 - 5 is the first chunk.
    expect(response.headers.get(TAIL_INDEX)).toBe('4');
    expect(await chunksOf(response)).toEqual(chunks);
    expect((await app.ask('GET', `/one/${run}/stream?startIndex=0`)).headers.has(TAIL_INDEX)).toBe(false);
  });

  it('AIS-13 AIS-14 is rejected with protocol 6, whose responses may begin with a replay', async () => {
    const { app, chunks, run } = await answered({ protocol: 6 });
    expect(chunks.length).toBeGreaterThan(10);
    for (const path of ['/one/one/stream', `/one/${run}/stream`, '/one/stream']) {
      for (const start of [-1, 0, 7]) {
        const response = await app.ask('GET', `${path}?startIndex=${start}`);
        expect(response.status).toBe(400);
        expect(await response.json()).toMatchObject({ message: expect.stringContaining('protocol: 7') as unknown });
      }
    }
    expect((await app.ask('GET', '/one/stream')).status).toBe(204);
  });

  it('AIS-32 shows a received approval once, at the same index before and after the answer continues', async () => {
    const { orchestrator } = await startAssistant();
    const options = { adapter: memoryAdapter(), orchestrators: [orchestrator] };
    const app = await startChatApp({ ...options, role: 'submit' });
    const worker = await startApplication({ ...options, role: 'work' });
    const response = await app.ask('POST', '/one', { body: { messages: [said('Please refund order 7.')] } });
    const asking = await chunksOf(response);
    await worker.close();
    const { toolCallId, approvalId } = asking.find(({ type }) => type === 'tool-approval-request')!;
    const [{ id }] = await app.turns.list({ sessionId: 'one' });
    await app.turns.signal(id, approvalSignal(toolCallId as string), { approved: true });

    const run = response.headers.get(RUN_ID)!;
    const shown: UIChunk[] = [];
    const over = chunksOf(await app.ask('GET', '/one/one/stream?startIndex=0'), (chunk) => (shown.push(chunk), false));
    await eventually(() => shown.some(({ type }) => type === 'tool-approval-response'));
    expect(shown).toEqual([...asking.slice(0, -1), { type: 'tool-approval-response', approvalId, approved: true }]);
    const begun = shown.length;
    await startApplication({ ...options, role: 'work' });
    await over;
    expect(shown.filter(({ type }) => type === 'tool-approval-response')).toHaveLength(1);
    expect(shown.at(-1)).toMatchObject({ type: 'finish' });
    for (const start of [begun - 1, begun, shown.length - 1]) {
      expect(await resumed(app, `/one/one/stream?startIndex=${start}`)).toEqual(shown.slice(start));
      expect(await resumed(app, `/one/${run}/stream?startIndex=${start}`)).toEqual(shown.slice(start));
    }
  });

  it('AIS-13 AIS-15 names a response by its chat if the store is unavailable for long', async () => {
    const store = new Outage();
    const { orchestrator } = await startAssistant();
    const app = await startChatApp({ adapter: store.adapter, orchestrators: [orchestrator] });
    app.app.get(ChatResponses).patienceMs = 20;
    const response = await app.ask('POST', '/one', { body: { messages: [said('Where is order 7?')] } });
    expect(response.headers.get(RUN_ID)).toBe('one');
    store.isDown = false;
    const chunks = await chunksOf(response);
    expect(await resumed(app, '/one/one/stream?startIndex=7')).toEqual(chunks.slice(7));
  });

  it.each([
    ['waits for headers', 10_000],
    ['receives comments', 20],
  ])(
    'AIS-15 TRN-14 does not keep the process from stopping during an outage, if the client %s',
    async (_, patienceMs) => {
      const adapter = memoryAdapter();
      let refused = 0;
      const sessions = new Proxy(adapter.sessions, {
        get: () => async () => {
          refused += 1;
          throw new StoreUnavailableError('The store is down.');
        },
      });
      const { orchestrator } = await startAssistant();
      const app = await startChatApp({ adapter: { ...adapter, sessions }, orchestrators: [orchestrator] });
      app.app.get(ChatResponses).patienceMs = patienceMs;
      const received: UIChunk[] = [];
      let hasHeaders = false;
      const over = app.ask('POST', '/one', { body: { messages: [said('Where is order 7?')] } }).then((response) => {
        hasHeaders = true;
        return chunksOf(response, (chunk) => (received.push(chunk), false));
      });
      // The client receives neither an error nor an end, so that it resumes.
      const cut = expect(over).rejects.toThrow();
      await eventually(() => (patienceMs > 1000 ? refused > 0 : hasHeaders));
      await app.close();
      await cut;
      expect(received).toEqual([]);
    },
  );
});

const finish = { finishReason: 'stop' };

/** A store that accepts no turn at first. */
class Outage {
  isDown = true;
  readonly adapter: SessionsAdapter;

  constructor() {
    const adapter = memoryAdapter();
    const accept: typeof adapter.turns.accept = async (...args) => {
      if (this.isDown) throw new StoreUnavailableError('The store is down.');
      return adapter.turns.accept(...args);
    };
    const turns = new Proxy(adapter.turns, {
      get: (port, name) => (name === 'accept' ? accept : (Reflect.get(port, name) as unknown)),
    });
    this.adapter = Object.create(adapter, { turns: { value: turns } }) as SessionsAdapter;
  }
}

async function answered(chat: ChatAppOptions['chat'] = {}): Promise<{ app: ChatApp; chunks: UIChunk[]; run: string }> {
  const { orchestrator } = await startAssistant();
  const app = await startChatApp({ orchestrators: [orchestrator], chat });
  const response = await app.ask('POST', '/one', { body: { messages: [said('Where is order 7?')] } });
  return { app, chunks: await chunksOf(response), run: response.headers.get(RUN_ID)! };
}

async function resumed(app: ChatApp, path: string): Promise<UIChunk[]> {
  const response = await app.ask('GET', path);
  expect(response.status).toBe(200);
  return chunksOf(response);
}
