import fc from 'fast-check';
import { BROKEN_JSON } from './broken-json.js';

/** Returns a string with one change. */
const damaged = (value: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  fc
    .tuple(value, fc.nat(), fc.integer({ min: 0, max: 3 }), fc.string({ unit: 'binary', maxLength: 3 }))
    .map(([whole, place, cut, put]) => {
      const text = JSON.stringify(whole);
      const at = place % (text.length + 1);
      return text.slice(0, at) + put + text.slice(at + cut);
    });

/**
 * Returns bodies of a request, mostly JSON.
 * @param right valid values for at least one route
 * @param nearly right, nearly right, or wrong in one place
 */
export const bodyOf = (
  right: fc.Arbitrary<unknown>,
  nearly: fc.Arbitrary<unknown>,
): fc.Arbitrary<string | Uint8Array | null> =>
  fc.oneof(
    { weight: 10, arbitrary: nearly.map((value) => JSON.stringify(value)) },
    { weight: 8, arbitrary: right.map((value) => JSON.stringify(value)) },
    { weight: 4, arbitrary: damaged(fc.oneof(nearly, right)) },
    { weight: 4, arbitrary: fc.constantFrom(...BROKEN_JSON).map((text) => text.replaceAll('ID', 'ID0')) },
    { weight: 1, arbitrary: fc.jsonValue().map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
    { weight: 1, arbitrary: fc.constantFrom('sessionId=ID0', 'sessionId=ID0&all=true', 'all=true') },
    { weight: 1, arbitrary: fc.constant(null) },
  );
