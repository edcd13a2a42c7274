import { VersionHandoff } from '../../lib/turn/version-handoff.js';

type Offered = Parameters<VersionHandoff['offeredFor']>[0];

const SETTINGS: ConstructorParameters<typeof VersionHandoff>[0] = {
  leaseMs: 30_000,
  reconcileMs: 1000,
  retry: { attempts: 3, maxLost: 3, backoff: { type: 'fixed', delayMs: 1000, maxDelayMs: 1000 } },
};
const AWAY_MS = 100;

it('BOT-35 a turn is offered since the first time that it came, as long as it keeps coming', () => {
  const handoff = new VersionHandoff(SETTINGS, true);
  const ages = [1000, 1060, 1160, 1260].map((now) => handoff.offeredFor(turn('a'), AWAY_MS, now));
  expect(ages).toEqual([0, 60, 160, 260]);
  expect(handoff.offeredFor(turn('b'), AWAY_MS, 1270)).toBe(0);
});

it('BOT-35 one that got further, or was away for long, is new', () => {
  const handoff = new VersionHandoff(SETTINGS, true);
  handoff.offeredFor(turn('a'), AWAY_MS, 1000);
  expect(handoff.offeredFor(turn('a', 1), AWAY_MS, 1050)).toBe(0);
  expect(handoff.offeredFor(turn('a', 1), AWAY_MS, 1100)).toBe(50);
  expect(handoff.offeredFor(turn('a', 1), AWAY_MS, 1201)).toBe(0);
});

it('BOT-35 does not remember every turn that ever came', () => {
  const handoff = new VersionHandoff(SETTINGS, true);
  for (let index = 0; index <= 10_000; index += 1) handoff.offeredFor(turn(`turn-${index}`), AWAY_MS, 1000);
  expect(handoff.offeredFor(turn('turn-0'), AWAY_MS, 1001)).toBe(0);
  expect(handoff.offeredFor(turn('turn-10000'), AWAY_MS, 1001)).toBe(1);
});

it('FIX-84 leaves turns to code with more intents only if another process can run them', () => {
  const claimed = {
    turn: { id: 'a', version: '1', request: {} },
    checkpoint: null,
    steps: [],
  } as unknown as Parameters<VersionHandoff['accepts']>[0];
  const accepts = (isShared: boolean, isOutgrown: boolean): boolean =>
    new VersionHandoff(SETTINGS, isShared).accepts(claimed, { version: '1' }, isOutgrown);
  expect(accepts(true, true)).toBe(false);
  expect(accepts(false, true)).toBe(true);
  expect(accepts(true, false)).toBe(true);
});

function turn(id: string, steps = 0): Offered {
  return { turn: { id }, steps: Array.from({ length: steps }) } as unknown as Offered;
}
