import fc from 'fast-check';
import { iso } from '../../lib/store/core/iso.js';

/** The largest time of a `Date`. */
const LAST = 8_640_000_000_000_000;

describe('the times of records', () => {
  it('PRF-14 are formatted like Date.toISOString', () => {
    const time = fc.oneof(
      fc.integer({ min: -LAST, max: LAST }),
      fc.integer({ min: Date.UTC(1970, 0), max: Date.UTC(2100, 0) }),
      fc.constantFrom(0, -1, LAST, -LAST, 86_399_999, 86_400_000, 0.5, -0.5, 1.5),
    );
    fc.assert(
      fc.property(time, (ms) => expect(iso(ms)).toBe(new Date(ms).toISOString())),
      { numRuns: 2000 },
    );
  });

  it('FIX-53 are rejected when they are not times', () => {
    for (const time of [NaN, Infinity, 'soon' as unknown as number, undefined as unknown as number]) {
      expect(() => iso(time)).toThrow(RangeError);
    }
  });
});
