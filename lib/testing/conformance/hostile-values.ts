import { type JsonObject, type JsonValue } from '../../common/json.js';

/**
 * Strings that a store could alter: NUL, halves of surrogate pairs, combining and look-alike characters, direction
 * marks, and characters of escapes, quotes and templates.
 */
export const HOSTILE_TEXTS: readonly string[] = [
  '',
  ' both ends ',
  'NUL \u0000 within and at the end \u0000',
  'half a pair \ud83d',
  '\udc69 the other half',
  'a pair the wrong way round \udc69\ud83d',
  '👩‍👩‍👧‍👦 a family, joined by ZWJ, and one with a tone 👍🏽',
  '\u200Fright to left\u202E, isolated\u2066, marked\u200E',
  'the last characters \u{10FFFF} \uFFFF \uFFFE \uFFFD',
  '\uFEFFa byte order mark',
  'á is not a\u0301, ﬁ is not fi, Å is not Å, ｱ is not ア',
  'line ends \n \r\n \r \u0085 \u2028 \u2029',
  'other control characters \u0001 \b \t \f \u001B \u007F \u009F',
  `quotes " ' \` and backslashes \\ \\" \\u0000 \\ud83d`,
  "'; DROP TABLE turn; --",
  '%s %d $1 :name ? @p1 {{x}} ${x} {turn} <!-- </script> ]]>',
  '__proto__',
  'null',
  '2026-11-21T08:00:00.000Z',
  '0123',
];

/** Numbers that must keep every digit. */
const EXACT_NUMBERS: readonly number[] = [
  0,
  -1.5,
  0.1,
  1e-7,
  5e-324,
  1e21,
  Number.MAX_SAFE_INTEGER,
  Number.MIN_SAFE_INTEGER,
  2 ** 53,
  Number.MAX_VALUE,
  Number.EPSILON,
];

/** Returns a new JSON value that a store must return unchanged. */
export function hostileJson(): JsonObject {
  return {
    ...prototypeKeys(),
    texts: [...HOSTILE_TEXTS],
    keys: Object.fromEntries(HOSTILE_TEXTS.map((text) => [text, text])),
    numbers: [...EXACT_NUMBERS],
    empty: [{}, [], '', null, false, 0, [[]], [null], { '': null }],
    nested: prototypeKeys(),
  };
}

/** Own properties with the names of inherited ones, as JSON.parse creates them. */
export function prototypeKeys(): JsonObject {
  return JSON.parse(
    `{ "__proto__": { "polluted": true }, "constructor": { "prototype": { "polluted": true } },
       "hasOwnProperty": 1, "toString": "text", "toJSON": null, "valueOf": [], "length": -1, "then": {} }`,
  ) as JsonObject;
}

/** Returns a value of the given depth. */
export function deepestJson(levels: number): JsonValue {
  let value: JsonValue = 'bottom';
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { deeper: value };
  return value;
}
