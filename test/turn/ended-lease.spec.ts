import { jest } from '@jest/globals';
import { defineOrchestrator, StoreUnavailableError } from 'nestjs-agent-sessions';
import { type ClaimedTurn, TurnFencedError, type TurnLedger } from 'nestjs-agent-sessions/adapter';
import { mintId } from '../../lib/common/ids.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { LIVE_STORES, startApplication } from '../support/running-application.js';

const LEASE_MS = 900;
const PAUSES = [
  ['the process stood still', standStill],
  ['the machine slept', sleep],
] as const;

describe.each(LIVE_STORES)('a step after the lease has ended, over $name', ({ open }) => {
  afterEach(() => jest.restoreAllMocks());

  it.each(PAUSES)('FIX-07 FIX-90 does not run when %s and another worker has the turn', async (_, pause) => {
    expect(await effectsOf(true, pause)).toEqual(['attempt 2']);
  });

  it.each(PAUSES)('FIX-07 FIX-90 runs when %s and the lease could be renewed', async (_, pause) => {
    expect(await effectsOf(false, pause)).toEqual(['attempt 1']);
  });

  it.each([
    ['does not run when another worker has the turn', true, ['attempt 2']],
    ['runs when the lease could be renewed', false, ['attempt 1']],
  ])('FIX-07 FIX-90 %s, although the machine wakes before its network', async (_, isTaken, effects) => {
    expect(await effectsOf(isTaken, sleep, 2)).toEqual(effects);
  });

  /** @param failures the number of renewals that fail before the store is available */
  async function effectsOf(isTaken: boolean, pause: (ms: number) => void, failures = 0): Promise<string[]> {
    const adapter = open();
    const effects: string[] = [];
    let renewals = 0;
    const turns = overriding(adapter.turns, {
      renew: async (hold, leaseMs) => {
        renewals += 1;
        if (renewals <= failures) throw new StoreUnavailableError('no network', { maybeApplied: false });
        if (isTaken) throw new TurnFencedError(hold.sessionId, hold.turnId, hold.fence);
        return adapter.turns.renew(hold, leaseMs);
      },
    });
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        pay: async (turn) => {
          if (turn.attempt === 1) pause(2 * LEASE_MS);
          const before = renewals;
          await turn.step('pay', () => effects.push(`attempt ${turn.attempt}`));
          if (turn.attempt === 1) expect(renewals).toBeGreaterThan(before);
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

describe.each(LIVE_STORES)('a claim whose answer arrives after the lease has ended, over $name', ({ open }) => {
  it.each([
    ['releases the turn uncounted when it still holds the fence', false],
    ['writes nothing when another worker has the turn', true],
  ])('FIX-62 %s', async (_, isTaken) => {
    const adapter = open();
    const attempts: number[] = [];
    let slow = true;
    const answered = async (claimed: ClaimedTurn | null): Promise<ClaimedTurn | null> => {
      if (!claimed || !slow) return claimed;
      slow = false;
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS));
      const taken = isTaken && (await adapter.turns.claim(claimed.hold.sessionId, claimRequest('other')));
      if (taken) await adapter.turns.settle(taken.hold, { status: 'completed', messages: [], keepCheckpoints: 'all' });
      return claimed;
    };
    const turns = overriding(adapter.turns, {
      // Without an immediate claim, so that the claim below is the first one.
      accept: ({ claim: _claim, ...request }) => adapter.turns.accept(request),
      claim: async (sessionId, request) => answered(await adapter.turns.claim(sessionId, request)),
    });
    const desk = defineOrchestrator({
      name: 'desk',
      intents: { answer: ({ attempt }) => void attempts.push(attempt) },
    });
    const app = await startApplication({
      adapter: { ...adapter, turns },
      orchestrators: [desk],
      // Only the slow worker looks for the turn.
      turns: { leaseMs: LEASE_MS, reconcileMs: 10 * LEASE_MS },
    });
    const { id } = await app.turns.submit('desk', 'hi', { sessionId: await app.session() });
    await app.turns.result(id);
    expect((await app.turns.get(id))?.lost).toBe(isTaken ? 1 : 0);
    await app.close();
    expect(attempts).toEqual(isTaken ? [] : [1]);
  });

  it.each([
    ['FIX-62', 'whose lease has ended', 'desk'],
    ['FIX-84', 'that this process cannot run', 'ghost'],
  ])('%s logs as lost a turn %s and that cannot be released', async (_, __, orchestrator) => {
    const adapter = open();
    const { lines, logger } = capturingLogger();
    const claims: string[] = [];
    const turns = overriding(adapter.turns, {
      claim: async (sessionId, request) => {
        const claimed = await adapter.turns.claim(sessionId, request);
        if (claimed) claims.push(claimed.turn.id);
        if (claimed && orchestrator === 'desk') await new Promise((resolve) => setTimeout(resolve, LEASE_MS));
        return claimed;
      },
      release: async ({ sessionId, turnId, fence }) => {
        throw new TurnFencedError(sessionId, turnId, fence);
      },
    });
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'Done.' } });
    const app = await startApplication({
      adapter: { ...adapter, turns },
      orchestrators: [desk],
      logger,
      turns: { leaseMs: LEASE_MS },
    });
    const sessionId = await app.session();
    await adapter.turns.accept(turnRequest(mintId(), { sessionId, orchestrator }));
    const warnings = (): string[] => lines.filter((line) => /^(warn|error) (Turn|Could) /.test(line));
    await eventually(() => warnings().length > 0);
    expect(warnings()[0]).toMatch(
      new RegExp(`^warn Turn ${claims[0]} is no longer held by this worker.*TurnFencedError`, 's'),
    );
  });
});

/** Simulates a frozen process: no timer fires, and the handler continues first. */
function standStill(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** Simulates a machine that slept: only the wall clock advanced. */
function sleep(ms: number): void {
  const now = Date.now.bind(Date);
  jest.spyOn(Date, 'now').mockImplementation(() => now() + ms);
}

/** The ledger with some of its operations replaced. */
function overriding(ledger: TurnLedger, operations: Partial<TurnLedger>): TurnLedger {
  return Object.assign(Object.create(ledger) as TurnLedger, operations);
}
