import fc from 'fast-check';
import { jest } from '@jest/globals';
import { Allow, getMetadataStorage, IsString } from 'class-validator';
import { InvalidInputError } from 'nestjs-agent-sessions';
import {
  checkInput,
  Must,
  MustBeInteger,
  MustBeName,
  MustBeTime,
  Optional,
  validateInput,
} from '../../lib/common/check-input.js';

class Booking {
  @MustBeName()
  guest!: string;

  @Optional()
  @MustBeInteger(1, 30)
  nights?: number;

  @Optional()
  @MustBeTime()
  from?: string;

  @Optional()
  @Must((value) => value === 'sea' || value === 'town', 'must be sea or town.')
  view?: string;

  @Allow()
  extra?: unknown;
}

class LateBooking extends Booking {
  @IsString()
  code!: string;
}

class LongBooking extends Booking {
  @Optional()
  @MustBeInteger(1, 90)
  override nights?: number;
}

const check = (input: unknown): Booking => checkInput(Booking, input, 'booking');

describe('checkInput', () => {
  it('SES-04 returns an instance with the given values, and does not change the input', () => {
    const extra = new Map();
    const input = Object.freeze({ guest: 'ann', nights: 2, view: 'sea', extra });
    const booking = check(input);

    expect(booking).toBeInstanceOf(Booking);
    expect({ ...booking }).toEqual(input);
    // The copy is shallow.
    expect(booking.extra).toBe(extra);
    expect(check(booking)).not.toBe(booking);
  });

  it('SES-04 treats undefined as absent, and rejects null', () => {
    expect(check({ guest: 'ann', nights: undefined, from: undefined })).toMatchObject({ guest: 'ann' });
    expect(problemOf({ guest: 'ann', nights: null })).toEqual({
      path: 'booking.nights',
      problem: 'must be an integer from 1 to 30. Received: null.',
    });
    expect(problemOf({ guest: null })).toMatchObject({ path: 'booking.guest' });
    expect(problemOf({})).toMatchObject({ path: 'booking.guest' });
  });

  it('SES-04 keeps rules of class-validator beside its own, and those of a class that has a property again', () => {
    const late = checkInput(LateBooking, { guest: 'ann', code: 'x7' }, 'booking');
    expect(late).toBeInstanceOf(LateBooking);
    expect(validateInput(LateBooking, { guest: 'ann', code: 7 }, 'booking')).toMatchObject({
      problem: { path: 'booking.code' },
    });
    expect(checkInput(LongBooking, { guest: 'ann', nights: 60 }, 'booking').nights).toBe(60);
    for (const nights of [91, null]) {
      const problem = { path: 'booking.nights', value: nights, rule: 'must be an integer from 1 to 90.' };
      expect(validateInput(LongBooking, { guest: 'ann', nights }, 'booking')).toEqual({ problem });
    }
  });

  it('SES-04 skips class-validator for inputs known to be valid', () => {
    const asked = jest.spyOn(getMetadataStorage(), 'getTargetValidationMetadatas');
    for (const nights of [1, undefined, 30]) check({ guest: 'ann', nights, extra: null });
    expect(asked.mock.calls.length).toBeLessThan(2);
    expect(problemOf({ guest: 'ann', nights: 31 })).toMatchObject({ path: 'booking.nights' });
    expect(asked).toHaveBeenCalled();
    asked.mockRestore();
  });

  it('SES-04 rejects every unknown key', () => {
    const known = ['guest', 'nights', 'from', 'view', 'extra'];
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString', 'valueOf', 'hasOwnProperty', 'Guest'),
        ),
        fc.jsonValue(),
        (key, value) => {
          fc.pre(!known.includes(key));
          const input = { guest: 'ann' };
          Object.defineProperty(input, key, { value, enumerable: true });
          expect(() => check(input)).toThrow(InvalidInputError);
        },
      ),
      { numRuns: 200 },
    );
    expect(problemOf({ guest: 'ann', night: 2 })).toEqual({
      path: 'booking.night',
      problem: 'is not a known key. Did you mean nights? Allowed: guest, nights, from, view, extra.',
    });
  });

  it('FIX-48 accepts instances of other classes, and rejects their unknown keys', () => {
    class Dto {
      constructor(readonly guest: string) {}
      get shown(): string {
        return this.guest;
      }
    }
    expect(check(new Dto('ann'))).toMatchObject({ guest: 'ann' });
    expect(problemOf(Object.assign(new Dto('ann'), { gust: 1 }))).toEqual({
      path: 'booking.gust',
      problem: 'is not a known key. Did you mean guest? Allowed: guest, nights, from, view, extra.',
    });
  });

  it('SES-04 rejects values that are not objects with fields', () => {
    expect(problemOf(undefined)).toEqual({ path: 'booking', problem: 'must be an object. Received: undefined.' });
    for (const input of ['ann', 7, true, [], () => 1, new Map(), new Date(), new Error('ann'), Promise.resolve()]) {
      expect(problemOf(input)).toEqual({ path: 'booking', problem: 'must be an object.' });
    }
    expect(check(Object.assign(Object.create(null) as object, { guest: 'ann' }))).toMatchObject({ guest: 'ann' });
  });

  it('SES-04 never changes a prototype', () => {
    const input: unknown = JSON.parse('{"guest":"ann","__proto__":{"admin":true}}');

    expect(() => check(input)).toThrow(InvalidInputError);
    expect(({} as Record<string, unknown>).admin).toBeUndefined();
    expect((new Booking() as unknown as Record<string, unknown>).admin).toBeUndefined();
  });

  it('SES-04 accepts only integers within their bounds', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer({ min: -5, max: 40 }), fc.double(), fc.anything()), (nights) => {
        const fits = Number.isInteger(nights) && (nights as number) >= 1 && (nights as number) <= 30;
        const checked = validateInput(Booking, { guest: 'ann', nights }, 'booking');
        expect('value' in checked).toBe(fits || nights === undefined);
      }),
    );
  });

  it('SES-04 accepts every time that Date formats, and only times that Date parses', () => {
    const year = (text: string) => Date.parse(`${text}-01-01T00:00:00.000Z`);
    const dates = fc.date({ min: new Date(year('1000')), max: new Date(year('9999')), noInvalidDate: true });
    fc.assert(fc.property(dates, (date) => check({ guest: 'ann', from: date.toISOString() }).from !== undefined));

    const digits = fc.string({ unit: fc.constantFrom(...'0123456789-:.,TWZ+ '), maxLength: 30 });
    const nearly = fc.tuple(dates, fc.nat({ max: 23 }), digits).map(([date, at, text]) => {
      const time = date.toISOString();
      return time.slice(0, at) + text.slice(0, 2) + time.slice(at + 1);
    });
    fc.assert(
      fc.property(fc.oneof(digits, nearly), (from) => {
        const checked = validateInput(Booking, { guest: 'ann', from }, 'booking');
        if ('value' in checked) expect(Number.isNaN(Date.parse(from))).toBe(false);
      }),
      { numRuns: 3000 },
    );
  });

  it('SES-14 names the first wrong value by its path, and includes the value on request', () => {
    expect(validateInput(Booking, { guest: 'ann', view: 'garden' }, 'booking')).toEqual({
      problem: { path: 'booking.view', value: 'garden', rule: 'must be sea or town.' },
    });
    expect(validateInput(Booking, { guest: '' }, '')).toMatchObject({ problem: { path: 'guest', value: '' } });
    expect(() => check({ guest: 'ann', view: 'garden' })).toThrow('booking.view must be sea or town.');
  });
});

function problemOf(input: unknown): { path: string; problem: string } {
  try {
    check(input);
  } catch (error) {
    if (error instanceof InvalidInputError) return { path: error.path, problem: error.problem };
    throw error;
  }
  throw new Error('The input should have been refused.');
}
