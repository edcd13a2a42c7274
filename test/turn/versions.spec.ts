import fc from 'fast-check';
import { compareVersions } from '../../lib/turn/version-handoff.js';
import { type Backoff, backoffMs } from '../../lib/common/backoff.js';
import { isPermanent } from '../../lib/ledger/turn-error-record.js';

const ASCENDING = ['0', '1', '1-beta', '1.0', '1.2', '1.9', '1.10', '2', '10', 'a', 'b'];
const DATED = ['2025-12', '2026-2-a', '2026-10-b', '2026-11-a', '2026-11-b'];
const STAMPED = ['20261121103000123', '20261121103000124', '20261121103000125'];

describe('compareVersions', () => {
  it.each([
    ['numbers', ASCENDING],
    ['dates', DATED],
    ['numbers too long for a double', STAMPED],
  ])('orders %s as people write them', (_, ascending) => {
    for (const [i, a] of ascending.entries()) {
      for (const [j, b] of ascending.entries()) {
        expect([a, b, Math.sign(compareVersions(a, b))]).toEqual([a, b, Math.sign(i - j)]);
      }
    }
  });

  it('counts leading zeros for nothing', () => {
    expect(compareVersions('1.02', '1.2')).toBe(0);
    expect(compareVersions('1.02', '1.10')).toBeLessThan(0);
  });

  it('is a total order', () => {
    const version = fc.string({ unit: fc.constantFrom('0', '1', '9', '.', '-', 'a', 'Z'), maxLength: 6 });
    fc.assert(
      fc.property(version, version, version, (a, b, c) => {
        const sign = (x: string, y: string): number => Math.sign(compareVersions(x, y));
        expect(sign(a, a)).toBe(0);
        expect(sign(a, b) + sign(b, a)).toBe(0);
        if (sign(a, b) <= 0 && sign(b, c) <= 0) expect(sign(a, c)).toBeLessThanOrEqual(0);
      }),
    );
  });
});

describe('backoffMs', () => {
  it('TRN-08 fixed: the same pause after every failure', () => {
    const backoff: Backoff = { type: 'fixed', delayMs: 250, maxDelayMs: 100 };
    expect([1, 2, 10].map((failures) => backoffMs(backoff, failures))).toEqual([250, 250, 250]);
  });

  it('TRN-08 exponential: doubles up to the limit, spread over its upper half', () => {
    const backoff: Backoff = { type: 'exponential', delayMs: 100, maxDelayMs: 1000 };
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), (failures) => {
        const full = Math.min(100 * 2 ** (failures - 1), 1000);
        const pause = backoffMs(backoff, failures);
        expect(pause).toBeGreaterThanOrEqual(full / 2);
        expect(pause).toBeLessThanOrEqual(full);
        expect(Number.isInteger(pause)).toBe(true);
      }),
    );
  });

  it('TRN-08 exponential: turns that failed together are not retried together', () => {
    const backoff: Backoff = { type: 'exponential', delayMs: 10_000, maxDelayMs: 60_000 };
    const pauses = new Set(Array.from({ length: 50 }, () => backoffMs(backoff, 1)));
    expect(pauses.size).toBeGreaterThan(25);
  });
});

const PERMANENT: readonly (readonly [unknown, boolean])[] = [
  [{ permanent: true }, true],
  [Object.assign(new Error('no'), { permanent: true }), true],
  [{ permanent: 'yes' }, false],
  [new Error('no'), false],
  [null, false],
  [undefined, false],
  ['permanent', false],
];

it.each(PERMANENT)('TRN-08 %p is permanent: %p', (error, expected) => {
  expect(isPermanent(error)).toBe(expected);
});
