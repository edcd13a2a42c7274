import { type LoggerService } from '@nestjs/common';
import {
  createSessionStore,
  defineOrchestrator,
  type SessionsAdapter,
  StoreUnavailableError,
  type TurnHold,
  type TurnLedger,
} from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { eventually } from '../support/eventually.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { LASTING_STORES, startApplication } from '../support/running-application.js';

const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'done' } });

describe.each(LASTING_STORES)('what an application that starts finds, over $name', ({ create }) => {
  it('BOT-32 it resumes what the dead left, skips what there is nothing to resume of, and says so once', async () => {
    const open = create();
    const before = await opened(open);
    const [lost, released, untouched, waiting] = await sessionsIn(before, 4);
    await begin(before, lost);
    await before.turns.release(await begin(before, released), 0);
    const step = { iteration: 0, intent: 'answer', name: 'go', occurrence: 0 };
    await before.turns.wait(await begin(before, waiting), { signal: 'go', step, timeoutMs: 1 });
    await before.turns.accept(turnRequest(mintId(), { sessionId: untouched }));
    await untilLapsed(before, lost);
    await before.close?.();

    const { logger, lines } = listeningLogger();
    const { turns } = await startApplication({ adapter: open(), orchestrators: [desk], logger });
    for (const sessionId of [lost, released, untouched, waiting]) {
      await eventually(async () => (await turns.list({ sessionId }))[0].status === 'awaiting-input');
    }
    const { resumed, skipped, failed } = turns.lanes.recovery;
    // One that nobody took for a while is offered again.
    expect(resumed).toBeGreaterThanOrEqual(2);
    expect(skipped).toBeGreaterThanOrEqual(2);
    expect(failed).toBe(0);
    const told = lines.filter((line) => line.startsWith('Looked for turns that were left behind'));
    expect(told).toEqual([expect.stringMatching(/: [12] resumed; [0-2] lanes skipped, .*; 0 failed to be read\.$/)]);
  });

  it('BOT-32 a session that cannot be read or claimed does not stop the others', async () => {
    const open = create();
    const before = await opened(open);
    const [bad, ...good] = await sessionsIn(before, 4);
    for (const sessionId of [bad, ...good]) await begin(before, sessionId);
    for (const sessionId of [bad, ...good]) await untilLapsed(before, sessionId);
    await before.close?.();

    const adapter = open();
    const refusing = async <T>(sessionId: string, call: () => Promise<T>): Promise<T> => {
      if (sessionId === bad) throw new StoreUnavailableError('Its pages are damaged.');
      return call();
    };
    const turns: Partial<TurnLedger> = {
      lane: async (sessionId) => refusing(sessionId, () => adapter.turns.lane(sessionId)),
      claim: async (sessionId, request) => refusing(sessionId, () => adapter.turns.claim(sessionId, request)),
    };
    const app = await startApplication({
      adapter: { ...adapter, turns: Object.assign(Object.create(adapter.turns) as TurnLedger, turns) },
      orchestrators: [desk],
    });
    for (const sessionId of good) {
      await eventually(async () => (await app.turns.list({ sessionId }))[0].status === 'awaiting-input');
    }
    expect(app.turns.lanes.recovery.resumed).toBeGreaterThanOrEqual(3);
    expect(app.turns.lanes.recovery.failed).toBeGreaterThanOrEqual(1);
    expect(await app.turns.list({ sessionId: bad })).toMatchObject([{ status: 'running' }]);
  });

  it('BOT-32 nothing left behind, nothing said', async () => {
    const { logger, lines } = listeningLogger();
    const { turns, session } = await startApplication({ adapter: create()(), orchestrators: [desk], logger });
    await turns.execute('desk', 'hi', { sessionId: await session() });
    expect(turns.lanes.recovery).toEqual({ resumed: 0, skipped: 0, failed: 0 });
    expect(lines.filter((line) => line.includes('left behind'))).toEqual([]);
  });
});

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
async function begin({ turns }: SessionsAdapter, sessionId: string): Promise<TurnHold> {
  await turns.accept(turnRequest(mintId(), { sessionId }));
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
