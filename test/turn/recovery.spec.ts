import { type LoggerService } from '@nestjs/common';
import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  type SessionsAdapter,
  StoreUnavailableError,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { type ClaimedTurn, TurnFencedError, type TurnHold, type TurnLedger } from 'nestjs-agent-sessions/adapter';
import { InProcessQueue } from '../../lib/queue/in-process/in-process-queue.js';
import { mintId } from '../../lib/common/ids.js';
import { eventually } from '../support/eventually.js';
import { claimRequest } from '../support/ledger-requests.js';
import {
  aborted,
  gate,
  LASTING_STORES,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';

describe.each(LASTING_STORES)('a worker that died, over $name', ({ create }) => {
  it('TRN-15 loses its turn to another worker, which keeps the order and does not repeat stored steps', async () => {
    const open = create();
    const { desk, attempts } = recordingDesk();
    const { adapter, turns, session } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const { turn } = await dieWith(adapter, sessionId, 'interrupted', (hold) =>
      adapter.turns.saveStep(hold, step('charge', 'charged by the dead')),
    );
    const behind = turns.execute('desk', 'behind', { sessionId });

    expect(await turns.result(turn.id)).toMatchObject({ reply: 'charged by the dead', turnIndex: 0 });
    expect(await behind).toMatchObject({ reply: 'charged', turnIndex: 1 });
    expect(attempts).toEqual(['interrupted 2', 'behind 1']);
    expect(await turns.get(turn.id)).toMatchObject({ status: 'awaiting-input', failures: 0, lost: 1 });
  });

  it('TRN-15 cannot write when it comes back too late', async () => {
    const open = create();
    const { desk } = recordingDesk();
    const { adapter, turns, session } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { hold, turn } = await dieWith(adapter, await session(), 'interrupted');
    await turns.result(turn.id);
    const settled = await turns.get(turn.id);

    const settlement = { status: 'completed', messages: [], keepCheckpoints: 'all' } as const;
    await rejection(adapter.turns.settle(hold, settlement), TurnFencedError);
    await rejection(adapter.turns.saveStep(hold, step('late', 1)), TurnFencedError);
    await rejection(adapter.turns.renew(hold, 1000), TurnFencedError);
    expect(await turns.get(turn.id)).toEqual(settled);
  });

  it('TRN-15 fails a turn that kills its workers after the last attempt, and continues the lane', async () => {
    const open = create();
    const { desk, attempts } = recordingDesk();
    const { adapter, turns, session } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { maxLost: 1 } },
    });
    const sessionId = await session();
    const { turn } = await dieWith(adapter, sessionId, 'poison');
    const behind = turns.execute('desk', 'behind', { sessionId });
    const error = await rejection(turns.result(turn.id), TurnFailedError);
    expect(error.failure).toMatchObject({ name: 'WorkerLostError', code: 'WORKER_LOST' });
    expect(await behind).toMatchObject({ turnIndex: 0 });
    expect(attempts).toEqual(['behind 1']);
  });

  it('TRN-15 TRN-20 hands its turns to an application that starts later', async () => {
    const open = create();
    const before = open();
    await before.init?.();
    const sessionId = mintId();
    await before.sessions.insert(newSession(sessionId));
    const { turn } = await dieWith(before, sessionId, 'interrupted');
    const { turn: queued } = await accept(before, sessionId, 'queued');
    await before.close?.();

    const { desk, attempts } = recordingDesk();
    const { turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    expect(await turns.result(queued.id)).toMatchObject({ turnIndex: 1 });
    expect(await turns.get(turn.id)).toMatchObject({ status: 'awaiting-input', turnIndex: 0 });
    expect(attempts).toEqual(['interrupted 2', 'queued 1']);
  });

  it('TRN-20 resumes the queued turns of a closed application when it starts again', async () => {
    const open = create();
    const { pass, open: release } = gate();
    const slow = recordingDesk(({ signal }) => pass(signal));
    const first = await startApplication({
      adapter: open(),
      orchestrators: [slow.desk],
      turns: { shutdownGraceMs: 0 },
    });
    const sessionIds = await Promise.all(Array.from({ length: 3 }, () => first.session()));
    for (const text of ['one', 'two', 'three']) {
      for (const sessionId of sessionIds) await first.turns.submit('desk', text, { sessionId });
    }
    await first.close();
    release();

    const { desk } = recordingDesk();
    const second = await startApplication({ adapter: open(), orchestrators: [desk] });
    await eventually(async () => {
      const left = await Promise.all(
        sessionIds.map((sessionId) => second.turns.list({ sessionId, status: ['queued', 'running'] })),
      );
      return left.flat().length === 0;
    });
    for (const sessionId of sessionIds) {
      const messages = await second.adapter.conversations.page(sessionId);
      const said = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
      expect(said).toEqual(['one', 'two', 'three']);
      const failures = (await second.turns.list({ sessionId })).map((turn) => turn.failures);
      expect(failures).toEqual([0, 0, 0]);
    }
  });
});

/** Long enough for a renewal after a machine pause of two seconds. */
const RENEWED_MS = 3600;

describe.each(LIVE_STORES)('leases over $name', ({ open }) => {
  it('TRN-15 renews the lease of a handler that takes longer than the lease', async () => {
    const { pass, open: release } = gate();
    const { desk, attempts } = recordingDesk(({ signal }) => pass(signal));
    const { session, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { leaseMs: RENEWED_MS },
    });
    const sessionId = await session();
    const done = turns.execute('desk', 'long', { sessionId });
    const until = async (): Promise<number> => Date.parse((await turns.lanes.get(sessionId)).head?.leaseUntil ?? '');
    const firstEnd = await eventually(until);
    // At least two renewals.
    await eventually(async () => (await until()) > firstEnd + RENEWED_MS / 2);
    release();
    await done;
    expect(attempts).toEqual(['long 1']);
  });

  it('TRN-15 stops the handler of a worker that cannot renew, and retries the turn', async () => {
    const adapter = open();
    let away = true;
    const ledger = overriding(adapter.turns, {
      renew: async (...args) => {
        if (away) throw new StoreUnavailableError('The connection is down.');
        return adapter.turns.renew(...args);
      },
    });
    const { desk, attempts } = recordingDesk(async ({ signal, attempt }) => {
      if (attempt > 1) return;
      await aborted(signal).finally(() => {
        away = false;
      });
    });
    const { session, turns } = await startApplication({
      adapter: { ...adapter, turns: ledger },
      orchestrators: [desk],
      turns: { leaseMs: 1500 },
    });
    const { id } = await turns.execute('desk', 'cut off', { sessionId: await session() });
    // The second lease may lapse, too, if the machine pauses.
    expect(attempts.slice(0, 2)).toEqual(['cut off 1', 'cut off 2']);
    expect(await turns.get(id)).toMatchObject({ lost: attempts.length - 1 });
  });

  it('TRN-15 BOT-08 repeats a settle whose response was lost, and counts it once', async () => {
    const adapter = open();
    let lost = 0;
    const ledger = overriding(adapter.turns, {
      settle: async (...args) => {
        const settled = await adapter.turns.settle(...args);
        if ((lost += 1) <= 2) throw new StoreUnavailableError('The connection broke after the commit.');
        return settled;
      },
    });
    const { desk, attempts } = recordingDesk();
    const { session, turns, checkpoints } = await startApplication({
      adapter: { ...adapter, turns: ledger },
      orchestrators: [desk],
    });
    const sessionId = await session();
    const accepted = [
      await turns.submit('desk', 'one', { sessionId }),
      await turns.submit('desk', 'two', { sessionId }),
    ];
    const results = await Promise.all(accepted.map(({ id }) => turns.result(id)));
    expect(results).toMatchObject([{ turnIndex: 0 }, { turnIndex: 1 }]);
    expect(attempts).toEqual(['one 1', 'two 1']);
    expect(await checkpoints.history('desk', sessionId)).toHaveLength(2);
    expect(await adapter.conversations.page(sessionId)).toHaveLength(4);
  });

  it('BOT-08 rejects with a typed error when the store is unavailable, and accepts nothing', async () => {
    const adapter = open();
    let away = false;
    const ledger = overriding(adapter.turns, {
      accept: async (...args) => {
        if (away) throw new StoreUnavailableError('The connection is down.');
        return adapter.turns.accept(...args);
      },
    });
    const { desk } = recordingDesk();
    const { session, turns } = await startApplication({
      adapter: { ...adapter, turns: ledger },
      orchestrators: [desk],
    });
    const sessionId = await session();
    away = true;
    const error = await rejection(turns.execute('desk', 'hi', { sessionId }), StoreUnavailableError);
    expect(error.code).toBe('STORE_UNAVAILABLE');
    expect(await turns.list({ sessionId })).toEqual([]);
  });
});

describe('the warning at start', () => {
  it('TRN-20 recommends BullMQ for a shared store with an in-process queue', async () => {
    const { logger, lines } = listeningLogger();
    await startApplication({ adapter: { ...memoryAdapter(), shared: true }, logger });
    expect(lines.filter((line) => line.includes('BullMQ'))).toHaveLength(1);
  });

  it('TRN-20 is absent for a store of one process, and with a custom queue', async () => {
    const { logger, lines } = listeningLogger();
    await startApplication({ adapter: memoryAdapter(), logger });
    await startApplication({
      adapter: { ...memoryAdapter(), shared: true },
      turns: { queue: new InProcessQueue(1) },
      logger,
    });
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.filter((line) => line.includes('BullMQ'))).toEqual([]);
  });
});

/** Simulates a worker that claims a turn, does some work and dies: the lease lapses soon. */
async function dieWith(
  adapter: SessionsAdapter,
  sessionId: string,
  text: string,
  work: (hold: TurnHold) => Promise<unknown> = async () => {},
): Promise<ClaimedTurn> {
  await accept(adapter, sessionId, text);
  const claimed = await adapter.turns.claim(sessionId, claimRequest(mintId()));
  if (!claimed) throw new Error('Another worker claimed the turn.');
  await work(claimed.hold);
  await adapter.turns.renew(claimed.hold, 150);
  return claimed;
}

function accept(adapter: SessionsAdapter, sessionId: string, text: string): ReturnType<TurnLedger['accept']> {
  return adapter.turns.accept({
    id: mintId(),
    sessionId,
    orchestrator: 'desk',
    version: '1',
    request: { input: { text } },
    attributes: {},
    whenBusy: 'enqueue',
    maxQueued: 100,
  });
}

function newSession(id: string): Parameters<SessionsAdapter['sessions']['insert']>[0] {
  const now = new Date().toISOString();
  return { id, userId: 'ann', state: 'created', createdAt: now, lastActivityAt: now, attachedSurfaces: [], metadata: {}, version: 1 }; // prettier-ignore
}

function step(name: string, value: string | number) {
  return { kind: 'step' as const, iteration: 0, intent: 'answer', parent: '', name, key: 0, value };
}

/** Does `work`, then charges in a step and replies with the step's result. */
function recordingDesk(work: (turn: TurnContext) => Promise<void> = async () => {}) {
  const attempts: string[] = [];
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn) => {
        attempts.push(`${turn.input.text} ${turn.attempt}`);
        await work(turn);
        return reply(await turn.step('charge', () => 'charged'));
      },
    },
  });
  return { desk, attempts };
}

/** Returns the ledger with some operations replaced. */
function overriding(ledger: TurnLedger, operations: Partial<TurnLedger>): TurnLedger {
  return Object.assign(Object.create(ledger) as TurnLedger, operations);
}

function listeningLogger(): { logger: LoggerService; lines: string[] } {
  const lines: string[] = [];
  const write = (message: unknown): void => void lines.push(String(message));
  return { logger: { log: write, warn: write, error: write, debug: write, verbose: write }, lines };
}
