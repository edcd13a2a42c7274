import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SessionsAdapter, SessionsConfigurationError } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter, type NewSession } from 'nestjs-agent-sessions/adapter';
import { describeSessionsAdapter } from 'nestjs-agent-sessions/testing';
import { jsonFileAdapter } from '../../sample/02-json-file-store/json-file-adapter.js';
import { limitModelRuns } from '../support/model-runs.js';

limitModelRuns(30);

const folder = mkdtempSync(join(tmpdir(), 'json-file-store-'));
let now = Date.now();
const clock = () => now;

describeSessionsAdapter('json file', () => ({
  adapter: jsonFileAdapter({ file: join(folder, 'suite.jsonl'), clock }),
  elapse: async (ms) => {
    now += ms;
  },
}));

describe('the file of the json file store', () => {
  const DRAFT: NewSession = { id: 'ann-1', userId: 'ann', attachedSurfaces: ['web'], metadata: { locale: 'de' } };
  const ACCEPT = {
    sessionId: DRAFT.id,
    orchestrator: 'desk',
    version: '1',
    request: { input: { text: 'hello' } },
    attributes: {},
    whenBusy: 'enqueue',
    maxQueued: 9,
  } as const;
  const CLAIM = { leaseMs: 60_000, maxLost: 3, windows: {} };

  let files = 0;
  let file: string;
  const opened: SessionsAdapter[] = [];
  const children: ChildProcess[] = [];

  beforeEach(() => {
    files += 1;
    file = join(folder, `store-${files}.jsonl`);
  });

  afterEach(async () => {
    for (const adapter of opened.splice(0)) await adapter.close?.();
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('NST-26 keeps all data when it is closed and opened again', async () => {
    const adapter = await open();
    await fill(adapter);
    const before = await everything(adapter);
    await adapter.close?.();

    const again = await open();
    expect(await everything(again)).toEqual(before);
    await again.beginWork?.();
    expect(await everything(again)).toEqual(before);
    expect((await again.turns.accept({ ...ACCEPT, id: 'turn-4' })).turn.position).toBe(4);
  });

  it('NST-26 contains no deleted data', async () => {
    const adapter = await open();
    const before = await everything(adapter);
    await fill(adapter);
    await atomic(adapter).delete(DRAFT.id);
    await adapter.close?.();

    expect(await everything(await open())).toEqual(before);
  });

  it('NST-26 drops an incomplete last line, and continues', async () => {
    const adapter = await open();
    await fill(adapter);
    const before = await everything(adapter);
    await adapter.close?.();
    const lines = readFileSync(file, 'utf8');
    appendFileSync(file, lines.split('\n')[0].slice(0, -5));

    const again = await open();
    expect(await everything(again)).toEqual(before);
    await again.conversations.append(DRAFT.id, [{ id: 'late', role: 'user', content: 'still here?' }]);
    await again.close?.();

    const { messages } = await everything(await open());
    expect(messages).toEqual([...before.messages, expect.objectContaining({ id: 'late' })]);
  });

  it('NST-26 is rejected when it was damaged in the middle', async () => {
    writeFileSync(file, '[["sessions",["a"],{"id\n[]\n');
    await expect(open()).rejects.toThrow(SessionsConfigurationError);
  });

  it('NST-26 rejects a second process', async () => {
    const adapter = await open();
    await adapter.beginWork?.();
    const second = await open();
    await expect(second.beginWork?.()).rejects.toThrow(SessionsConfigurationError);
    await expect(second.leases.acquire('sweep', 'a', 1000)).rejects.toThrow(SessionsConfigurationError);

    await fill(adapter);
    const before = await everything(adapter);
    await adapter.close?.();
    await second.beginWork?.();
    expect(await everything(second)).toEqual(before);
  });

  it('NST-26 can be taken over from a killed process, with its running turn immediately claimable', async () => {
    const victim = await open();
    await fill(victim);
    const { hold } = (await victim.turns.claim(DRAFT.id, { ...CLAIM, holder: 'victim' }))!;
    // The file after a process that could not close it.
    const left = `${file}.left`;
    copyFileSync(file, left);
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    children.push(child);
    writeFileSync(`${left}.lock`, String(child.pid));

    const adapter = await open(left);
    await expect(adapter.beginWork?.()).rejects.toThrow(SessionsConfigurationError);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await adapter.beginWork?.();

    expect(await adapter.turns.due(9)).toEqual([DRAFT.id]);
    const claimed = (await adapter.turns.claim(DRAFT.id, { ...CLAIM, holder: 'successor' }))!;
    expect(claimed.hold).toEqual({ ...hold, fence: hold.fence + 1 });
    expect(claimed.turn).toMatchObject({ failures: 0, lost: 1 });
    await expect(adapter.turns.renew(hold, 1000)).rejects.toMatchObject({ code: 'TURN_FENCED' });
    await adapter.close?.();
    expect(existsSync(`${left}.lock`)).toBe(false);
  });

  async function open(of = file): Promise<SessionsAdapter> {
    const adapter = jsonFileAdapter({ file: of, clock });
    await adapter.init?.();
    opened.push(adapter);
    return adapter;
  }

  /** Fills every port: a settled, a waiting and a queued turn, in a lane that can be claimed. */
  async function fill(adapter: SessionsAdapter): Promise<void> {
    const { turns, checkpoints, conversations, state, leases } = adapter;
    await atomic(adapter).create(DRAFT, { policy: 'move', maxSurfaces: 9 });
    await atomic(adapter).erase('gone');
    for (const id of ['turn-1', 'turn-2', 'turn-3']) await turns.accept({ ...ACCEPT, id });
    const { hold } = (await turns.claim(DRAFT.id, { ...CLAIM, holder: 'a' }))!;
    const checkpoint = { orchestrator: 'desk', sessionId: DRAFT.id, turnIndex: 0, state: { n: 1 }, lastRoute: [] };
    const { next } = await turns.settle(
      hold,
      {
        status: 'awaiting-input',
        reply: { text: 'hi' },
        messages: [{ id: 'm1', role: 'user', content: '\ud800 \u0000 "hello"\n' }],
        checkpoint: { ...checkpoint, signature: 's', version: '1', summarizedThrough: 0 },
        keepCheckpoints: 'all',
      },
      { ...CLAIM, holder: 'b' },
    );
    const step = { kind: 'wait' as const, iteration: 0, intent: 'pay', parent: '', name: 'approval', key: 0 };
    await turns.wait(next!.hold, { signal: 'approved', step, timeoutMs: 0 });
    await turns.signal('turn-2', 'later', { by: 'bob' });
    await conversations.append(DRAFT.id, [{ id: 'm2', role: 'system', content: null }]);
    await checkpoints.append({ ...checkpoint, turnIndex: 1, signature: 's', version: '1', summarizedThrough: 0 }, 9);
    await state.set({ ...CART, sessionId: DRAFT.id }, { items: [1] }, { ttlMs: 60_000 });
    await leases.acquire('sweep', 'a', 60_000);
  }

  async function everything({ sessions, turns, checkpoints, conversations, state }: SessionsAdapter) {
    return {
      sessions: await sessions.fetchMany({}),
      turns: await turns.list({ sessionId: DRAFT.id }),
      checkpoints: await checkpoints.history('desk', DRAFT.id),
      messages: await conversations.page(DRAFT.id),
      cart: await state.get({ ...CART, sessionId: DRAFT.id }),
    };
  }
});

const CART = { namespace: 'shop', scope: '', key: 'cart' };

function atomic({ sessions }: SessionsAdapter): AtomicSessionStoreAdapter {
  return sessions as AtomicSessionStoreAdapter;
}
