import { setTimeout as delay } from 'node:timers/promises';
import vm from 'node:vm';
import fc from 'fast-check';
import { type JsonValue, StateSerializationError, TooLargeError } from 'nestjs-agent-sessions';
import { isPlainObject, stringifyWithin, toJson, toJsonObject } from '../../lib/common/json.js';

describe('toJson', () => {
  it('BOT-07 returns the same value as a JSON round trip, for any JSON value', () => {
    fc.assert(
      fc.property(jsonValues(), (value) => {
        expect(toJson(value, 'state')).toStrictEqual(JSON.parse(JSON.stringify(value)));
      }),
      { numRuns: 500 },
    );
  });

  it('BOT-07 returns a value that survives another JSON round trip', () => {
    fc.assert(
      fc.property(jsonValues(), (value) => {
        const json = toJson(value, 'state');
        expect(JSON.parse(JSON.stringify(json))).toStrictEqual(json);
        expect(toJson(json, 'state')).toStrictEqual(json);
      }),
    );
  });

  it('BOT-07 names the path to a value that JSON would change or reject', () => {
    fc.assert(
      fc.property(paths(), fc.constantFrom(...UNSERIALIZABLE), (path, { bad, found }) => {
        const error = failureOf(() => toJson(wrap(bad, path), 'state'));

        expect(error).toBeInstanceOf(StateSerializationError);
        expect(error).toMatchObject({
          code: 'STATE_NOT_SERIALIZABLE',
          path: `state${textOf(path)}`,
          found,
          permanent: true,
        });
      }),
      { numRuns: 500 },
    );
  });

  it('BOT-07 finds an invalid value among valid ones', () => {
    fc.assert(
      fc.property(jsonValues(), fc.constantFrom(...UNSERIALIZABLE), (value, { bad }) => {
        expect(failureOf(() => toJson([value, { bad }, value], 'state'))).toMatchObject({ path: 'state[1].bad' });
      }),
    );
  });

  it('FIX-64 keeps keys named like properties of every object, and changes no prototype', () => {
    fc.assert(
      fc.property(jsonValues(['constructor', 'prototype']), (value) => {
        const json = toJson(value, 'state');
        expect(JSON.stringify(json)).toBe(JSON.stringify(value));
        for (const object of objectsIn(json)) {
          if (!Array.isArray(object)) expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
        }
      }),
    );
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  it('FIX-64 rejects an own key __proto__ with its path, and does not read its value', () => {
    fc.assert(
      fc.property(paths(), (path) => {
        const bad = Object.defineProperty({}, '__proto__', { enumerable: true, get: fail });
        expect(failureOf(() => toJson(wrap(bad, path), 'state'))).toMatchObject({
          code: 'STATE_NOT_SERIALIZABLE',
          path: `state${textOf(path)}.__proto__`,
          found: 'a reserved key',
        });
      }),
    );
  });

  it('FIX-64 describes a value by its class, never by its own key `constructor`', () => {
    const wrong = Object.assign(new Map(), { constructor: { name: 'secret' } });
    expect(failureOf(() => toJson(wrong, 'state'))).toMatchObject({ found: 'an instance of Map' });
    expect(failureOf(() => toJsonObject([], 'state'))).toMatchObject({ found: 'an array' });
  });

  it('BOT-07 shares no object with the copied value', () => {
    fc.assert(
      fc.property(jsonValues(), (value) => {
        const originals = new Set<unknown>(objectsIn(value));
        for (const object of objectsIn(toJson(value, 'state'))) expect(originals.has(object)).toBe(false);
      }),
    );
  });

  it('BOT-07 does not change the value', () => {
    fc.assert(
      fc.property(jsonValues(), (value) => {
        expect(toJson(deepFreeze(value), 'state')).toStrictEqual(value);
      }),
    );
  });

  it('BOT-07 converts negative zero to zero', () => {
    expect(toJson([-0, { zero: -0 }], 'state')).toStrictEqual([0, { zero: 0 }]);
  });

  it('BOT-07 counts an undefined property as absent, but not an undefined item', () => {
    expect(toJson({ a: undefined, b: { c: undefined } }, 'state')).toStrictEqual({ b: {} });
    expect(failureOf(() => toJson([1, undefined], 'state'))).toMatchObject({ path: 'state[1]', found: 'undefined' });
    expect(failureOf(() => toJson(Array(3), 'state'))).toMatchObject({ path: 'state[0]', found: 'undefined' });
    expect(failureOf(() => toJson(undefined, 'state'))).toMatchObject({ path: 'state', found: 'undefined' });
  });

  it('BOT-07 converts -0 to 0, as JSON does', () => {
    expect(toJson([-0, { a: -0 }], 'state')).toStrictEqual([0, { a: 0 }]);
  });

  it('BOT-07 distinguishes a cycle from a repeated value', () => {
    const shared = { list: [1] };
    const cyclic: Record<string, unknown> = { shared, list: [shared] };

    expect(toJson(cyclic, 'state')).toStrictEqual({ shared, list: [shared] });
    cyclic.inner = { list: [{ cyclic }] };
    expect(failureOf(() => toJson(cyclic, 'state'))).toMatchObject({ path: 'state.inner.list[0].cyclic' });
  });

  it('BOT-07 accepts 200 levels and rejects more, instead of a stack overflow', () => {
    const nested = (levels: number) => wrap(1, Array<number>(levels).fill(0));

    expect(toJson(nested(200), 'state')).toStrictEqual(nested(200));
    for (const levels of [201, 100_000]) {
      const error = failureOf(() => toJson(nested(levels), 'state'));
      expect(error).toBeInstanceOf(StateSerializationError);
      expect((error as Error).message).toContain('200 levels');
    }
  });

  it('BOT-07 accepts plain objects of another realm or without a prototype, but no instances', () => {
    const foreign: unknown = vm.runInNewContext('({ a: [{ b: null }] })');
    const bare = Object.assign(Object.create(null) as object, { a: 1 });

    expect(toJson(foreign, 'state')).toStrictEqual({ a: [{ b: null }] });
    expect(toJson(bare, 'state')).toStrictEqual({ a: 1 });
    for (const source of ['new Date(0)', 'new Map()', 'new (class Order {})()', '() => 1']) {
      expect(failureOf(() => toJson(vm.runInNewContext(source), 'state'))).toBeInstanceOf(StateSerializationError);
    }
  });

  it('BOT-07 reports the invalid value and what to store instead', () => {
    const error = failureOf(() => toJson({ order: { at: new Date(0) } }, 'state'));

    expect((error as Error).message).toBe(
      'state.order.at is an instance of Date, which cannot be stored as JSON. Store a number or a string: `date.toISOString()`.',
    );
  });

  it.each([
    [Promise.resolve(1), 'is a promise, which cannot be stored as JSON. Add `await`.'],
    [new Set(), 'is an instance of Set, which cannot be stored as JSON. Store an array: `[...value]`.'],
    [
      1n,
      'is a bigint, which cannot be stored as JSON. Use plain objects, arrays, strings, finite numbers, booleans and null.',
    ],
  ])('DAY-17 says what to do about %p', (wrong, message) => {
    expect((failureOf(() => toJson({ at: wrong }, 'state')) as Error).message).toBe(`state.at ${message}`);
  });
});

describe('promises in a value', () => {
  it('FIX-05 do not end the process when they reject after the value was rejected', async () => {
    const unhandled: unknown[] = [];
    const listener = (reason: unknown): unknown => unhandled.push(reason);
    process.on('unhandledRejection', listener);
    const late = async (): Promise<never> => {
      await delay(5);
      throw new Error('The price is not known.');
    };
    const state: Record<string, unknown> = { order: { price: late() }, prices: [late()] };
    state.itself = state;

    expect(() => toJson(state, 'state')).toThrow('state.order.price is a promise');

    await delay(50);
    process.off('unhandledRejection', listener);
    expect(unhandled).toEqual([]);
  });
});

describe('toJsonObject', () => {
  it('BOT-07 accepts only plain objects', () => {
    fc.assert(
      fc.property(jsonValues(), (value) => {
        if (isPlainObject(value)) expect(toJsonObject(value, 'state')).toStrictEqual(toJson(value, 'state'));
        else expect(failureOf(() => toJsonObject(value, 'state'))).toMatchObject({ path: 'state' });
      }),
    );
  });
});

describe('stringifyWithin', () => {
  it('BOT-07 measures UTF-8 bytes of JSON, up to and including the limit', () => {
    fc.assert(
      fc.property(jsonValues(), (value) => {
        const json = toJson(value, 'state');
        const bytes = Buffer.from(JSON.stringify(json)).length;

        expect(stringifyWithin(json, bytes, 'The state')).toBe(JSON.stringify(json));
        const error = failureOf(() => stringifyWithin(json, bytes - 1, 'The state'));
        expect(error).toBeInstanceOf(TooLargeError);
        expect(error).toMatchObject({ code: 'TOO_LARGE', subject: 'The state', bytes, maxBytes: bytes - 1 });
      }),
    );
  });
});

class Order {
  readonly id = 7;
}

const UNSERIALIZABLE: readonly { readonly bad: unknown; readonly found: string }[] = [
  { bad: new Date(0), found: 'an instance of Date' },
  { bad: new Map([['a', 1]]), found: 'an instance of Map' },
  { bad: new Set(), found: 'an instance of Set' },
  { bad: new Order(), found: 'an instance of Order' },
  { bad: /x/, found: 'an instance of RegExp' },
  { bad: new Error('x'), found: 'an instance of Error' },
  { bad: Buffer.from('x'), found: 'an instance of Buffer' },
  { bad: new Uint8Array(2), found: 'an instance of Uint8Array' },
  { bad: Promise.resolve(), found: 'a promise' },
  { bad: Object(1), found: 'an instance of Number' },
  { bad: Object.create({ inherited: 1 }), found: 'an object' },
  { bad: 1n, found: 'a bigint' },
  { bad: () => 1, found: 'a function' },
  { bad: Order, found: 'a function' },
  { bad: Symbol('s'), found: 'a symbol' },
  { bad: NaN, found: 'NaN' },
  { bad: Infinity, found: 'Infinity' },
  { bad: -Infinity, found: '-Infinity' },
];

/** Strings of any code units: controls, lone surrogates, characters beyond the Basic Multilingual Plane. */
function texts(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.string({ unit: 'grapheme', maxLength: 12 }),
    fc.array(fc.integer({ min: 0xd7ff, max: 0xe000 }), { maxLength: 4 }).map((units) => String.fromCharCode(...units)),
    fc.constantFrom('\u0000', '\u2028', 'toString', 'hasOwnProperty', '0', ''),
  );
}

/** Any JSON value. Objects have any keys, including those of `more`, except `__proto__`. */
function jsonValues(more: readonly string[] = []): fc.Arbitrary<JsonValue> {
  const plain = texts().filter((key) => key !== '__proto__');
  const keys = more.length === 0 ? plain : fc.oneof(plain, fc.constantFrom(...more));
  // JSON has no negative zero, which a separate test covers.
  const doubles = fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (number === 0 ? 0 : number));
  const numbers = fc.oneof(doubles, fc.integer());
  const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.oneof(texts(), numbers, fc.boolean(), fc.constant(null)),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.array(fc.tuple(keys, tie('value')), { maxLength: 4 }).map(ownProperties),
    ),
  }));
  return value;
}

/** Creates an object like JSON.parse does, with `__proto__` as a normal key. */
function ownProperties(entries: readonly (readonly [string, JsonValue])[]): JsonValue {
  const result = {};
  for (const [key, value] of entries) {
    Object.defineProperty(result, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return result;
}

function fail(): never {
  throw new Error('The value was read.');
}

/** The path of a value: property names and indices. */
function paths(): fc.Arbitrary<(string | number)[]> {
  const name = texts().filter((key) => key !== '__proto__');
  return fc.array(fc.oneof(name, fc.nat({ max: 3 })), { maxLength: 6 });
}

function wrap(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduceRight<unknown>(
    (inner, step) =>
      typeof step === 'string' ? { before: 1, [step]: inner } : [...Array<null>(step).fill(null), inner],
    value,
  );
}

function textOf(path: readonly (string | number)[]): string {
  return path.map((step) => (typeof step === 'string' ? `.${step}` : `[${step}]`)).join('');
}

function objectsIn(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value, ...Object.values(value).flatMap(objectsIn)];
}

function deepFreeze(value: JsonValue): JsonValue {
  for (const object of objectsIn(value)) Object.freeze(object);
  return value;
}

function failureOf(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error('The call should have been refused.');
}
