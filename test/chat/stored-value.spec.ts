import fc from 'fast-check';
import { decode, encode } from '../../lib/chat/stored-value.js';
import { toJson } from '../../lib/common/json.js';

/** Values of answers and messages. Object keys include the one that stores reject. */
const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.jsonValue().map((json): unknown => JSON.parse(JSON.stringify(json))),
    fc.double().map((number) => (number === 0 ? 0 : number)),
    fc.date({ noInvalidDate: true }),
    fc.uint8Array(),
    fc.webUrl().map((url) => new URL(url)),
    fc.array(tie('value')),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('$type', 'value', 'constructor', '__proto__')), tie('value')),
  ),
})).value;

/** Stores a value like a step, and reads it again. */
function store(value: unknown): unknown {
  return decode(JSON.parse(JSON.stringify(toJson(encode(value), 'value'))) as never);
}

describe('stored values', () => {
  it('AIS-01 restores dates, bytes, URLs and numbers inside any value', () => {
    fc.assert(fc.property(values, (value) => expect(store(value)).toEqual(value)));
  });

  it('AIS-01 restores an invalid date', () => {
    const restored = store([new Date(NaN)]) as Date[];
    expect(restored).toEqual([expect.any(Date)]);
    // `toEqual` takes two invalid dates for different ones.
    expect(restored[0].getTime()).toBe(NaN);
  });

  it('AIS-01 restores bytes of any kind as a Uint8Array', () => {
    const bytes = new Uint8Array([1, 2, 3, 4]).subarray(1, 3);
    const restored = new Uint8Array([2, 3]);
    expect(store([Buffer.from([2, 3]), bytes])).toStrictEqual([restored, restored]);
    expect(store(restored.buffer)).toStrictEqual(restored);
  });

  it.each([
    [{ $type: 'date', value: 'x' }],
    [{ $type: 'object', value: [['a', 1]] }],
    [{ $type: 7 }],
    [{ $type: null }],
  ])('AIS-01 does not take %j for an encoded value', (value) => expect(store(value)).toEqual(value));

  it.each([
    [{ $type: 'url', value: 'nonsense' }],
    [{ $type: 'url' }],
    [{ $type: 'bytes', value: 7 }],
    [{ $type: 'number', value: null }],
    [{ $type: 'date', value: {} }],
    [{ $type: 'object', value: 'x' }],
    [{ $type: 'object', value: [7] }],
    [{ $type: 'object' }],
    [{ $type: 'toString', value: 'x' }],
    [{ $type: { a: 1 }, value: 'x' }],
  ])('AIS-06 returns %j, which is not an encoded value, unchanged', (json) => {
    expect(decode([json] as never)).toEqual([json]);
  });

  it('AIS-01 stores objects as readable JSON', () => {
    const value = { a: undefined, b: new Date(0), c: [new URL('https://example.org')], d: { e: 1 } };
    expect(encode(value)).toEqual({
      b: { $type: 'date', value: '1970-01-01T00:00:00.000Z' },
      c: [{ $type: 'url', value: 'https://example.org/' }],
      d: { e: 1 },
    });
  });

  it.each([new Map(), Symbol('a'), () => undefined, 1n])('AIS-01 leaves %p for the store to reject', (value) => {
    expect(() => store({ value })).toThrow('value.value is');
  });
});
