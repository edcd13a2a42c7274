import {
  defineOrchestrator,
  InvalidInputError,
  OrchestratorDriftError,
  PermanentTurnError,
  reply,
  type TurnContext,
  TurnFailedError,
  TurnReentryError,
  TurnWaitTimeoutError,
} from 'nestjs-agent-sessions';
import { type ClaimedTurn, type TurnRequest } from 'nestjs-agent-sessions/adapter';
import { mintId } from '../../lib/common/ids.js';
import { eventually } from '../support/eventually.js';
import {
  type Application,
  gate,
  LASTING_STORES,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';

/** Disables reconciliation in practice: only `resume` notifies. */
const ALONE = { reconcileMs: 600_000 };

describe.each(LIVE_STORES)('resume over $name', ({ open }) => {
  it('BOT-31 continues a turn that crashed in the first step of the first turn (known failure)', async () => {
    const { app, handle } = await startDesk(open);
    const sessionId = await app.session();
    const { turn } = await dieWith(app, sessionId, { input: { text: 'first words' } });
    expect(await lapsed(app, sessionId, () => handle.resume(sessionId))).toMatchObject({
      id: turn.id,
      turnIndex: 0,
      reply: 'first words: charged',
    });
    expect(await app.turns.get(turn.id)).toMatchObject({ status: 'awaiting-input', lost: 1 });
  });

  it('FIX-14 the result of a turn that the module recovered first, until the next turn ends', async () => {
    const { app, handle } = await startDesk(open);
    const sessionId = await app.session();
    await handle.execute('before', { sessionId });
    const { turn } = await dieWith(app, sessionId, { input: { text: 'interrupted' } });
    const queued = await app.turns.submit('shop', 'behind it', { sessionId });
    const resumed = await lapsed(app, sessionId, () => handle.resume(sessionId));
    expect(resumed).toMatchObject({ id: turn.id, reply: 'interrupted: charged' });
    await app.turns.result(queued.id);

    expect(await Promise.all([handle.resume(sessionId), handle.resume(sessionId)])).toEqual([resumed, resumed]);
    expect(await app.handle({ name: 'shop' }).resume(sessionId)).toBeNull();
    await app.turns.lanes.pause({ sessionId });
    const next = await handle.submit('next', { sessionId });
    expect(await handle.resume(sessionId)).toEqual(resumed);
    await app.turns.lanes.resume({ sessionId });
    await app.turns.result(next.id);
    expect(await handle.resume(sessionId)).toBeNull();
  });

  it('FIX-14 the error of a recovered turn that then failed', async () => {
    const { app, handle } = await startDesk(open, ({ input }) => {
      throw new PermanentTurnError(input.text);
    });
    const sessionId = await app.session();
    const { turn } = await dieWith(app, sessionId, { input: { text: 'interrupted' } });
    await lapsed(app, sessionId, () => rejection(handle.resume(sessionId), TurnFailedError));
    expect(await rejection(handle.resume(sessionId), TurnFailedError)).toMatchObject({ turnId: turn.id });
  });

  it("BOT-31 with the turn's own input, history, state and steps", async () => {
    const seen: unknown[] = [];
    const { app, handle } = await startDesk(open, ({ input, history, state, attributes }) => {
      seen.push(input.text, history, state, attributes);
    });
    const sessionId = await app.session();
    await handle.execute('before', { sessionId });
    seen.length = 0;
    const history = [{ role: 'user', content: 'elsewhere' }] as const;
    const request = { input: { text: 'interrupted' }, history, statePatch: { vip: true } };
    const { hold } = await dieWith(app, sessionId, request);
    const step = {
      kind: 'step' as const,
      iteration: 0,
      intent: 'answer',
      parent: '',
      name: 'charge',
      key: 0,
      value: 'charged by the dead',
    };
    await app.adapter.turns.saveStep(hold, step);
    expect(await lapsed(app, sessionId, () => handle.resume(sessionId))).toMatchObject({
      reply: 'interrupted: charged by the dead',
    });
    expect(seen).toEqual(['interrupted', history, { vip: true }, { channel: 'web' }]);
  });

  it('BOT-31 waits for a turn that a live worker runs, without a change to it', async () => {
    const { pass, open: release } = gate();
    const attempts: number[] = [];
    const { app, handle } = await startDesk(open, async ({ attempt, signal }) => {
      attempts.push(attempt);
      await pass(signal);
    });
    const sessionId = await app.session();
    const { id } = await handle.submit('slow', { sessionId });
    await eventually(() => attempts.length === 1);
    const early = await rejection(handle.resume(sessionId, { timeoutMs: 50 }), TurnWaitTimeoutError);
    expect(early.turnId).toBe(id);
    const resumed = handle.resume(sessionId);
    release();
    expect(await resumed).toMatchObject({ id, reply: 'slow: charged' });
    expect(attempts).toEqual([1]);
  });

  it('BOT-31 null: nothing in flight, a turn that never began, one that waits for a signal', async () => {
    const { app, handle } = await startDesk(open, async (turn) => {
      if (turn.input.text === 'wait') await turn.waitFor('go');
    });
    const sessionId = await app.session();
    expect(await handle.resume(sessionId)).toBeNull();
    expect(await handle.resume('unknown')).toBeNull();
    await app.turns.lanes.pause({ sessionId });
    const { id } = await handle.submit('wait', { sessionId });
    expect(await handle.resume(sessionId)).toBeNull();
    await app.turns.lanes.resume({ sessionId });
    await eventually(async () => (await app.turns.get(id))?.status === 'waiting');
    expect(await handle.resume(sessionId)).toBeNull();
    await app.turns.signal(id, 'go');
    expect(await app.turns.result(id)).toMatchObject({ reply: 'wait: charged' });
  });

  it('BOT-31 ignores an interrupted turn of another orchestrator', async () => {
    const { app, handle } = await startDesk(open);
    const sessionId = await app.session();
    const { turn } = await dieWith(app, sessionId, { input: { text: 'mine' } }, 'shop');
    expect(await lapsed(app, sessionId, () => handle.resume(sessionId))).toBeNull();
    expect(await app.turns.get(turn.id)).toMatchObject({ status: 'running' });
    expect(await app.handle({ name: 'shop' }).resume(sessionId)).toMatchObject({ id: turn.id, reply: 'sold' });
  });

  it('BOT-31 TRN-12 rejects a handler that resumes its own session, and invalid arguments', async () => {
    const seen: unknown[] = [];
    const { app, handle } = await startDesk(open, async ({ sessionId }) => {
      seen.push(await rejection(app.handle({ name: 'desk' }).resume(sessionId), TurnReentryError));
    });
    await handle.execute('hi', { sessionId: await app.session() });
    expect(seen).toHaveLength(1);
    expect((await rejection(handle.resume('../x'), InvalidInputError)).path).toBe('sessionId');
    expect((await rejection(handle.resume('x', { timeoutMs: -1 }), InvalidInputError)).path).toBe('options.timeoutMs');
  });
});

it.each(LASTING_STORES)('BOT-23 BOT-31 rejects drift on resume without a dispatch, over $name', async ({ create }) => {
  const open = create();
  const former = await startDesk(open);
  const sessionId = await former.app.session();
  await former.handle.execute('before', { sessionId });
  await former.app.close();

  const ran: string[] = [];
  const changed = defineOrchestrator({
    name: 'desk',
    route: () => (ran.push('route'), 'tell'),
    intents: { tell: () => void ran.push('tell') },
  });
  const app = await startApplication({ adapter: open(), orchestrators: [changed], turns: ALONE });
  await dieWith(app, sessionId, { input: { text: 'interrupted' } });
  const error = await rejection(
    lapsed(app, sessionId, () => app.handle(changed).resume(sessionId)),
    OrchestratorDriftError,
  );
  expect(error).toMatchObject({ currentSignature: changed.signature, sessionId });
  expect(ran).toEqual([]);
  expect(await app.handle(changed).execute('adopt', { sessionId, force: true })).toMatchObject({ turnIndex: 1 });
});

describe('commands', () => {
  it('BOT-01 rejects an unknown command, and names the known ones', async () => {
    const { handle } = await startDesk(LIVE_STORES[0].open);
    const error = await rejection(handle.command('compakt' as 'compact', { sessionId: 's' }), InvalidInputError);
    expect(error.message).toMatch(/^command must be compact or restore\. Received: "compakt"\./);
  });
});

async function startDesk(
  open: (typeof LIVE_STORES)[number]['open'],
  work: (turn: TurnContext) => Promise<void> | void = () => {},
) {
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn) => {
        await work(turn);
        return reply(`${turn.input.text}: ${await turn.step('charge', () => 'charged')}`);
      },
    },
  });
  const shop = defineOrchestrator({ name: 'shop', intents: { sell: () => 'sold' } });
  const app = await startApplication({ adapter: open(), orchestrators: [desk, shop], turns: ALONE });
  return { app, handle: app.handle(desk) };
}

/** Leaves a turn as a worker does that claimed it and died: its lease lapses soon. */
async function dieWith(
  { adapter }: Application,
  sessionId: string,
  request: TurnRequest,
  orchestrator = 'desk',
): Promise<ClaimedTurn> {
  await adapter.turns.accept({
    id: mintId(),
    sessionId,
    orchestrator,
    version: '1',
    request,
    attributes: { channel: 'web' },
    whenBusy: 'enqueue',
    maxQueued: 100,
  });
  const claimed = await adapter.turns.claim(sessionId, { holder: mintId(), leaseMs: 300, maxLost: 3, windows: {} });
  if (!claimed) throw new Error('Another worker claimed the turn first.');
  return claimed;
}

/** Does something once the dead worker's lease has lapsed. */
async function lapsed<T>({ turns }: Application, sessionId: string, work: () => Promise<T>): Promise<T> {
  await eventually(async () => {
    const { head } = await turns.lanes.get(sessionId);
    return Date.parse(head?.leaseUntil ?? '') < Date.now() - 5;
  });
  return work();
}
