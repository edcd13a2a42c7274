const tooLong = 'x'.repeat(257);

/** Invalid names of users, workspaces and surfaces. */
export const badNames: readonly unknown[] = [
  '',
  tooLong,
  'a\u0000b',
  'a\nb',
  'lone \ud83d',
  '\udc69 lone',
  null,
  7,
  true,
  {},
  ['ann'],
  new String('ann'),
];

/** Invalid session ids. */
export const badIds: readonly unknown[] = [
  '',
  'x'.repeat(201),
  ' ',
  'a b',
  'a\nb',
  '-a',
  '.',
  'a*',
  'ä',
  '\ud83d',
  "a'",
  null,
  7,
  {},
  ['a'],
];

const cycle: Record<string, unknown> = { deep: {} };
(cycle.deep as Record<string, unknown>).back = cycle;

class Order {
  readonly id = 7;
}

/** Values that JSON cannot represent, with the path that the error must name. */
export const badMetadata: [what: string, metadata: unknown, path: string][] = [
  ['null', null, 'metadata'],
  ['an array', [1], 'metadata'],
  ['a string', 'text', 'metadata'],
  ['a number', 7, 'metadata'],
  ['a Map', new Map([['a', 1]]), 'metadata'],
  ['a Date inside', { at: new Date(0) }, 'metadata.at'],
  ['a Map inside', { a: [0, { b: new Map() }] }, 'metadata.a[1].b'],
  ['a Set inside', { a: new Set() }, 'metadata.a'],
  ['a class instance inside', { order: new Order() }, 'metadata.order'],
  ['a BigInt', { a: { b: 1n } }, 'metadata.a.b'],
  ['a function', { a: () => 1 }, 'metadata.a'],
  ['a symbol', { a: Symbol('s') }, 'metadata.a'],
  ['NaN', { a: NaN }, 'metadata.a'],
  ['Infinity', { a: [-Infinity] }, 'metadata.a[0]'],
  ['a cycle', cycle, 'metadata.deep.back'],
  ['undefined in an array', { a: [undefined] }, 'metadata.a[0]'],
  ['a hole in an array', { a: Array(2) }, 'metadata.a[0]'],
  ['its own toJSON', { a: { toJSON: () => 1 } }, 'metadata.a.toJSON'],
];

/** Invalid times. */
export const badTimes: readonly unknown[] = [
  '',
  'yesterday',
  '2026-01-01',
  '2026-01-01T00:00:00',
  '2026-01-01 00:00:00Z',
  '2026-02-30T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-01-01T25:00:00Z',
  '2026-01-01T00:00:00.000Z; DROP TABLE',
  // Valid in ISO 8601, but not parsed by Date.
  '2026-W01-1T00:00:00Z',
  '2026-001T00:00:00Z',
  '20260101T000000Z',
  '2026-01-01T00Z',
  '2026-01-01T00:00:00,5Z',
  '1767225600000',
  1767225600000,
  null,
  new Date(0),
];

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const time = '2026-01-01T00:00:00.000Z';

/** Invalid cursors. */
export const badCursors: readonly unknown[] = [
  '',
  'abc',
  null,
  7,
  {},
  ['a'],
  encode({}),
  encode([time, time]),
  encode([time, time, 7]),
  encode([time, time, 'a', 'b']),
  encode([time, 'now', 'a']),
  encode(['2026-99-99T99:99:99.999Z', time, 'a']),
  encode([time, '2026-02-30T00:00:00.000Z', 'a']),
  encode([time, time, 'x'.repeat(2000)]),
];

/** Cursors in the form of `nextCursor` with an invalid session id. */
export const forgedCursors: readonly (readonly [what: string, cursor: string])[] = [
  ['the id %', encode([time, time, '%'])],
  ['an empty id', encode([time, time, ''])],
  ['an id with a NUL', encode([time, time, 'a\0b'])],
  ['an id with a lone surrogate', encode([time, time, 'a\ud800'])],
  ['an id of 201 characters', encode([time, time, 'x'.repeat(201)])],
];
