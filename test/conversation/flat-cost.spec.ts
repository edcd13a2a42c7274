import { defineOrchestrator, type MessageDraft, reply, type SessionsAdapter } from 'nestjs-agent-sessions';
import { startApplication } from '../support/running-application.js';
import { EMBEDDED_STORES } from '../support/stores.js';
import { afterTurns } from './after-turn.js';

const PORTS = ['turns', 'checkpoints', 'conversations', 'state', 'leases', 'sessions'] as const;

interface Cost {
  trips: number;
  read: number;
  written: number;
}

/** Wraps a store to count its calls, and the bytes of arguments and results as JSON. */
function measured(adapter: SessionsAdapter, cost: Cost): SessionsAdapter {
  const bytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '');
  const ports = PORTS.map((port) => {
    const target = adapter[port] as object;
    const counting = new Proxy(target, {
      get(_, method) {
        const value: unknown = Reflect.get(target, method);
        // Polling for work depends on time, not on turns.
        if (typeof value !== 'function' || method === 'due') return value;
        return async (...args: unknown[]): Promise<unknown> => {
          const result = (await Reflect.apply(value, target, args)) as unknown;
          cost.trips += 1;
          cost.written += bytes(args);
          cost.read += bytes(result);
          return result;
        };
      },
    });
    return [port, counting];
  });
  return { ...adapter, ...Object.fromEntries(ports) } as SessionsAdapter;
}

describe.each(EMBEDDED_STORES)('a conversation of 1,000 turns over $name', ({ open }) => {
  it('BOT-46 costs the same at turn 1,000 as at turn 10, with the first turns summarized', async () => {
    const cost: Cost = { trips: 0, read: 0, written: 0 };
    let seen: readonly MessageDraft[] = [];
    const replaced: number[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      historyWindow: 30,
      compaction: {
        afterTurns: 10,
        keep: 6,
        summarize: (messages) => {
          replaced.push(messages.length);
          return 'They spoke of many things. '.repeat(10);
        },
      },
      intents: {
        answer: ({ history, input }) => {
          seen = history;
          return reply(`re ${input.text}`, { state: { last: input.text } });
        },
      },
    });
    const { app, handle, session } = await startApplication({
      adapter: measured(open().adapter, cost),
      orchestrators: [desk],
    });
    const sessionId = await session();
    const led = afterTurns(app);
    // Every turn has an input of the same length.
    const say = async (turn: number): Promise<void> => {
      const { id } = await handle(desk).execute(`turn ${String(turn).padStart(4, '0')} `.padEnd(200, '.'), {
        sessionId,
      });
      await led(id);
    };
    const costOf = async (from: number, to: number): Promise<Cost> => {
      const before = { ...cost };
      for (let turn = from; turn <= to; turn += 1) await say(turn);
      return {
        trips: cost.trips - before.trips,
        read: cost.read - before.read,
        written: cost.written - before.written,
      };
    };
    await costOf(1, 11);
    // Both ranges include two compactions, eight turns apart.
    const early = await costOf(12, 27);
    await costOf(28, 984);
    const late = await costOf(985, 1000);

    expect(late.trips).toBe(early.trips);
    expect(late.read / early.read).toBeLessThan(1.1);
    expect(late.written / early.written).toBeLessThan(1.1);
    expect(Math.max(...replaced)).toBeLessThan(30);
    expect(seen[0]).toMatchObject({
      role: 'system',
      replaces: { from: 1 },
      content: expect.stringContaining('spoke') as string,
    });
    expect(seen.length).toBeLessThanOrEqual(31);
  }, 120_000);
});
