import { defineOrchestrator } from 'nestjs-agent-sessions';
import { TurnFencedError, type TurnLedger } from 'nestjs-agent-sessions/adapter';
import { LIVE_STORES, startApplication } from '../support/running-application.js';

const LEASE_MS = 900;

describe.each(LIVE_STORES)('a step after the lease has ended, over $name', ({ open }) => {
  it('FIX-07 does not run when another worker has the turn', async () => {
    expect(await effectsOf(true)).toEqual(['attempt 2']);
  });

  it('FIX-07 runs when the lease could be renewed', async () => {
    expect(await effectsOf(false)).toEqual(['attempt 1']);
  });

  async function effectsOf(isTaken: boolean): Promise<string[]> {
    const adapter = open();
    const effects: string[] = [];
    const turns = overriding(adapter.turns, {
      renew: async (hold, leaseMs) => {
        if (isTaken) throw new TurnFencedError(hold.sessionId, hold.turnId, hold.fence);
        return adapter.turns.renew(hold, leaseMs);
      },
    });
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        pay: async (turn) => {
          if (turn.attempt === 1) standStill(2 * LEASE_MS);
          await turn.step('pay', () => effects.push(`attempt ${turn.attempt}`));
        },
      },
    });
    const app = await startApplication({
      adapter: { ...adapter, turns },
      orchestrators: [desk],
      turns: { leaseMs: LEASE_MS },
    });
    await app.handle(desk).execute('hi', { sessionId: await app.session() });
    return effects;
  }
});

/** Simulates a frozen process: no timer fires, and the handler continues first. */
function standStill(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** The ledger with some of its operations replaced. */
function overriding(ledger: TurnLedger, operations: Partial<TurnLedger>): TurnLedger {
  return Object.assign(Object.create(ledger) as TurnLedger, operations);
}
