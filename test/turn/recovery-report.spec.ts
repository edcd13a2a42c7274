import { type LoggerService } from '@nestjs/common';
import {
  createSessionStore,
  defineOrchestrator,
  type SessionsAdapter,
  StoreUnavailableError,
} from 'nestjs-agent-sessions';
import { type TurnHold, type TurnLedger } from 'nestjs-agent-sessions/adapter';
import { mintId } from '../../lib/common/ids.js';
import { eventually } from '../support/eventually.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { LASTING_STORES, startApplication } from '../support/running-application.js';

const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'done' } });

describe.each(LASTING_STORES)('what an application that starts finds, over $name', ({ create }) => {
  it('BOT-32 it counts what it takes over of the dead, once, and nothing else that it is offered', async () => {
    const open = create();
    const before = await opened(open);
    const [lost, released, untouched, waiting] = await sessionsIn(before, 4);
    await begin(before, lost);
    await before.turns.release(await begin(before, released), 0);
    const step = { kind: 'wait' as const, iteration: 0, intent: 'answer', parent: '', name: 'go', key: 0 };
    await before.turns.wait(await begin(before, waiting), { signal: 'go', step, timeoutMs: 1 });
    await before.turns.accept(turnRequest(mintId(), { sessionId: untouched }));
    await untilLapsed(before, lost);
    await before.close?.();

    const { logger, lines } = listeningLogger();
    const { turns } = await startApplication({ adapter: open(), orchestrators: [desk], logger });
    for (const sessionId of [lost, released, untouched, waiting]) {
      await eventually(async () => (await turns.list({ sessionId }))[0].status === 'awaiting-input');
    }
    expect(turns.lanes.recovery).toMatchObject({ resumed: 1, failed: 0 });
    const told = lines.filter((line) => line.startsWith('Recovery at start'));
    expect(told).toEqual([expect.stringMatching(/: (1 lane is|[2-4] lanes are) offered to workers\.$/)]);
  });

  it('BOT-32 skips an unknown turn once, however often it is offered', async () => {
    const open = create();
    const before = await opened(open);
    const [sessionId] = await sessionsIn(before, 1);
    await begin(before, sessionId, 'stranger');
    await untilLapsed(before, sessionId);
    await before.close?.();

    const adapter = open();
    let offers = 0;
    let reads = 0;
    const { turns } = await startApplication({
      adapter: withLedger(adapter, {
        release: async (...args) => {
          offers += 1;
          return adapter.turns.release(...args);
        },
        lane: async (id) => {
          reads += 1;
          return adapter.turns.lane(id);
        },
      }),
      orchestrators: [desk],
    });
    await eventually(() => offers > 5);
    expect(turns.lanes.recovery).toEqual({ resumed: 0, skipped: 1, failed: 0 });
    expect(reads).toBe(0);
  });

  it('BOT-32 a lane in which there is nothing to do by now is skipped', async () => {
    const open = create();
    const before = await opened(open);
    const [served] = await sessionsIn(before, 1);
    await before.close?.();

    const adapter = open();
    let offers = 0;
    const { turns } = await startApplication({
      adapter: withLedger(adapter, {
        due: async (limit) => [...(await adapter.turns.due(limit)), ...(offers++ === 0 ? [served] : [])],
      }),
      orchestrators: [desk],
    });
    await eventually(() => turns.lanes.recovery.skipped > 0);
    await eventually(() => offers > 3);
    expect(turns.lanes.recovery).toEqual({ resumed: 0, skipped: 1, failed: 0 });
  });

  it('BOT-32 TRN-08 a retry is no recovery; a turn that is resumed and fails has failed', async () => {
    const open = create();
    const before = await opened(open);
    const [lost] = await sessionsIn(before, 1);
    await begin(before, lost);
    await untilLapsed(before, lost);
    await before.close?.();

    const failing = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: () => {
          throw new Error('Out of order.');
        },
      },
    });
    const { turns, session } = await startApplication({
      adapter: open(),
      orchestrators: [failing],
      turns: { retry: { attempts: 4, backoff: { type: 'fixed', delayMs: 1 } } },
    });
    const sessionId = await session();
    await turns.submit('desk', 'hi', { sessionId });
    for (const id of [lost, sessionId]) {
      await eventually(async () => (await turns.list({ sessionId: id }))[0].status === 'failed');
    }
    await eventually(() => turns.lanes.recovery.failed > 0);
    expect(turns.lanes.recovery).toMatchObject({ resumed: 1, failed: 1 });
  });

  it('BOT-32 a session that cannot be claimed does not stop the others, and has failed once', async () => {
    const open = create();
    const before = await opened(open);
    const [bad, ...good] = await sessionsIn(before, 4);
    for (const sessionId of [bad, ...good]) await begin(before, sessionId);
    for (const sessionId of [bad, ...good]) await untilLapsed(before, sessionId);
    await before.close?.();

    const adapter = open();
    let refusals = 0;
    const app = await startApplication({
      adapter: withLedger(adapter, {
        claim: async (sessionId, request) => {
          if (sessionId !== bad) return adapter.turns.claim(sessionId, request);
          refusals += 1;
          throw new StoreUnavailableError('Its pages are damaged.');
        },
      }),
      orchestrators: [desk],
    });
    for (const sessionId of good) {
      await eventually(async () => (await app.turns.list({ sessionId }))[0].status === 'awaiting-input');
    }
    await eventually(() => refusals > 1);
    expect(app.turns.lanes.recovery).toMatchObject({ resumed: 3, failed: 1 });
    expect(await app.turns.list({ sessionId: bad })).toMatchObject([{ status: 'running' }]);
  });

  it('BOT-32 nothing left behind, nothing said', async () => {
    const { logger, lines } = listeningLogger();
    const { turns, session } = await startApplication({ adapter: create()(), orchestrators: [desk], logger });
    await turns.execute('desk', 'hi', { sessionId: await session() });
    expect(turns.lanes.recovery).toMatchObject({ resumed: 0, failed: 0 });
    expect(lines.filter((line) => line.includes('Recovery at start'))).toEqual([]);
  });
});

/** The adapter with another answer to some calls of its ledger. */
function withLedger(adapter: SessionsAdapter, changes: Partial<TurnLedger>): SessionsAdapter {
  return { ...adapter, turns: Object.assign(Object.create(adapter.turns) as TurnLedger, changes) };
}

async function opened(open: () => SessionsAdapter): Promise<SessionsAdapter> {
  const adapter = open();
  await adapter.init?.();
  return adapter;
}

async function sessionsIn(adapter: SessionsAdapter, count: number): Promise<string[]> {
  const sessions = createSessionStore({ adapter: adapter.sessions });
  const ids: string[] = [];
  while (ids.length < count) ids.push((await sessions.create({ userId: 'ann' })).id);
  return ids;
}

/** A turn that was begun by a worker that does not renew its lease. */
async function begin({ turns }: SessionsAdapter, sessionId: string, orchestrator = 'desk'): Promise<TurnHold> {
  await turns.accept(turnRequest(mintId(), { sessionId, orchestrator }));
  const claimed = await turns.claim(sessionId, claimRequest(mintId(), { leaseMs: 150 }));
  if (!claimed) throw new Error('Somebody else was faster.');
  return claimed.hold;
}

async function untilLapsed({ turns }: SessionsAdapter, sessionId: string): Promise<void> {
  await eventually(async () => Date.parse((await turns.lane(sessionId)).head?.leaseUntil ?? '') < Date.now());
}

function listeningLogger(): { logger: LoggerService; lines: string[] } {
  const lines: string[] = [];
  const write = (message: unknown): void => void lines.push(String(message));
  return { logger: { log: write, warn: write, error: write, debug: write, verbose: write }, lines };
}
