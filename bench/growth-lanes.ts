import { setTimeout as delay } from 'node:timers/promises';
import { type ClaimedTurn, type ClaimRequest } from 'nestjs-agent-sessions/adapter';
import { type Benchmark, type Curve, type Outcome } from './benchmark.js';
import { idOf, ORCHESTRATOR, VERSION } from './population.js';
import { type Contestant, interleave, timed } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type FilledStore, type Stores } from './stores.js';
import { expectSame } from './wrong-answer.error.js';

const MEASURES = ['due', 'claim', 'settle', 'accept'] as const;
type Measure = (typeof MEASURES)[number];

/** Fewer lanes than the smallest store has, so that a lane is not due again immediately. */
const SLICES = 10;
const PAGE = 10;
/** The time that a lane is reserved for the worker that received its notification. */
const GRACE_MS = 1000;
const AT_ONCE = 200;
const LEASE_MS = 600_000;

export const growthOfLanes: Benchmark = {
  id: 'GROWTH-LANES',
  title: 'What a worker asks of the store, as more and more lanes have work that waits',
  stores: ['sqlite', 'postgres', 'redis'],
  run,
};

async function run(stores: Stores, { rounds, growth: { lanes } }: Sizes): Promise<Outcome> {
  const contestants: Record<string, Contestant<Measure>> = {};
  for (const count of lanes) contestants[count] = await withWork(await stores.with(count), count);
  const measured = await interleave({ rounds, slices: SLICES }, contestants);
  const curve = (what: Measure): Curve => ({
    what: what === 'due' ? `${PAGE} lanes that are due` : what,
    unit: 'ms',
    by: 'lanes with work',
    points: lanes.map((size) => ({ size, rounds: measured[size][what] })),
  });
  return { comparisons: [], curves: MEASURES.map(curve) };
}

/** Keeps a waiting turn in every session: when one settles, the next is accepted. */
async function withWork({ adapter: { turns } }: FilledStore, lanes: number): Promise<Contestant<Measure>> {
  let accepted = 0;
  let acceptedAt = 0;
  const accept = async (sessionId: string): Promise<void> => {
    accepted += 1;
    acceptedAt = performance.now();
    const { duplicate } = await turns.accept({
      id: `waiting-${lanes}-${accepted}`,
      sessionId,
      orchestrator: ORCHESTRATOR,
      version: VERSION,
      request: { input: { text: 'And now?' } },
      attributes: {},
      whenBusy: 'enqueue',
      maxQueued: 100,
    });
    if (duplicate) expectSame(`whether turn ${accepted} is new`, duplicate, false);
  };
  const settle = async ({ hold, turn }: ClaimedTurn): Promise<void> => {
    const { next } = await turns.settle(hold, {
      status: 'awaiting-input',
      reply: { text: 'Soon.' },
      messages: [{ id: `${turn.id}.0`, role: 'user', content: 'And now?' }],
      keepCheckpoints: 1,
    });
    expectSame('turn that was not asked for', next, null);
  };
  for (let from = 0; from < lanes; from += AT_ONCE) {
    const length = Math.min(AT_ONCE, lanes - from);
    await Promise.all(Array.from({ length }, (_, i) => accept(idOf(from + i))));
  }
  return {
    prepare: () => delay(Math.max(0, acceptedAt + 1.1 * GRACE_MS - performance.now())),
    run: async () => {
      const cost: Record<Measure, number> = { due: 0, claim: 0, settle: 0, accept: 0 };
      let due: string[] = [];
      cost.due = await timed(async () => (due = await turns.due(PAGE)));
      expectSame(`lanes that are due of ${lanes}`, due.length, PAGE);
      for (const sessionId of due) {
        let claimed: ClaimedTurn | null = null;
        cost.claim += await timed(async () => (claimed = await turns.claim(sessionId, claimRequest())));
        expectSame(`whether lane ${sessionId} was claimed`, claimed !== null, true);
        cost.settle += await timed(() => settle(claimed!));
        cost.accept += await timed(() => accept(sessionId));
      }
      return { ...cost, claim: cost.claim / PAGE, settle: cost.settle / PAGE, accept: cost.accept / PAGE };
    },
  };
}

let claims = 0;

function claimRequest(): ClaimRequest {
  claims += 1;
  return { holder: `bench/${claims}`, leaseMs: LEASE_MS, maxLost: 3, windows: { [ORCHESTRATOR]: 20 } };
}
