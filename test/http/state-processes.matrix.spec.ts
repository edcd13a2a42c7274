import { type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createSessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { type StateEvent } from 'nestjs-agent-sessions/http';
import { forkProgram, kill } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { adapterOf, type StoreOptions, SHARED_STORES } from '../support/stores.js';
import { fill, filled } from './state-app.js';

const PROGRAM = fileURLToPath(new URL('./fixtures/state-server.mjs', import.meta.url));

interface Told {
  readonly url?: string;
  readonly event?: StateEvent;
  readonly hanging?: boolean;
}

interface Server {
  readonly child: ChildProcess;
  readonly told: Told[];
  readonly url: string;
}

describe.each(SHARED_STORES)('the control plane in several processes on $name', ({ place }) => {
  let servers: Server[];
  let store: StoreOptions;
  let adapter: SessionsAdapter;

  beforeAll(async () => {
    store = place();
    adapter = adapterOf(store);
    await adapter.init?.();
    servers = await Promise.all([serve(store), serve(store), serve(store, true)]);
  }, 60_000);

  afterAll(async () => {
    await Promise.all(servers.map(({ child }) => kill(child)));
    await adapter.close?.();
  });

  it('STA-27 resets once for equal requests in two processes, and returns that result to all', async () => {
    const both = servers.slice(0, 2);
    const sessionId = await filledSession();

    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, index) => reset(both[index % 2], sessionId, 'the-key')),
    );
    const late = await reset(both[1], sessionId, 'the-key');

    const done = answers.filter(({ status }) => status === 200);
    expect(new Set(answers.map(({ status }) => status)).size).toBeLessThanOrEqual(2);
    expect(answers.filter(({ status }) => ![200, 409].includes(status))).toEqual([]);
    for (const { status, retryAfter } of answers) expect(retryAfter).toBe(status === 409 ? '1' : null);
    for (const { body } of [...done, late]) expect(body).toMatchObject({ cleared: ['tools', 'flow'] });
    await eventually(() => both.flatMap(outcomes).length === 25);
    expect(both.flatMap(outcomes).filter((outcome) => outcome === 'done')).toHaveLength(1);
    expect(await filled(adapter, sessionId)).toEqual([0, 0]);
  });

  it('STA-27 keeps the key of a killed process reserved, so that another process does not run the request', async () => {
    const [other, , dying] = servers;
    const sessionId = await filledSession();

    const first = reset(dying, sessionId, 'killed').catch(() => null);
    await eventually(() => dying.told.some(({ hanging }) => hanging));
    await kill(dying.child);

    expect(await first).toBeNull();
    expect(await reset(other, sessionId, 'killed')).toMatchObject({
      status: 409,
      retryAfter: '1',
      body: { code: 'REQUEST_IN_PROGRESS' },
    });
    expect(await filled(adapter, sessionId)).toEqual([1, 1]);
  });

  async function filledSession(): Promise<string> {
    const { id } = await createSessionStore({ adapter: adapter.sessions }).create({ userId: 'ann' });
    await fill(adapter, id);
    return id;
  }
});

async function serve(store: StoreOptions, hangs = false): Promise<Server> {
  const child = forkProgram(PROGRAM, { store, hangs });
  const told: Told[] = [];
  child.on('message', (message: Told) => told.push(message));
  const url = await eventually(() => told.find((one) => one.url !== undefined)?.url, {
    limitMs: 50_000,
    what: 'its address',
  });
  return { child, told, url };
}

async function reset({ url }: Server, sessionId: string, key: string) {
  const answer = await fetch(`${url}/state/reset`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ sessionId }),
  });
  return {
    status: answer.status,
    retryAfter: answer.headers.get('retry-after'),
    body: (await answer.json()) as object,
  };
}

function outcomes({ told }: Server): string[] {
  return told.flatMap(({ event }) => (event ? [event.outcome] : []));
}
