import fc from 'fast-check';
import { InvalidInputError } from 'nestjs-agent-sessions';
import { assertId, assertName, isName, mintId } from '../../lib/common/ids.js';

describe('ids', () => {
  it('SES-02 generates 128 bits as 32 hexadecimal digits, never twice', () => {
    const ids = Array.from({ length: 10_000 }, mintId);

    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => !/^[0-9a-f]{32}$/.test(id))).toEqual([]);
    for (const id of ids.slice(0, 100)) expect(accepts(assertId, id)).toBe(true);
  });

  it('SES-02 varies all bits of generated ids', () => {
    const ids = Array.from({ length: 2000 }, () => BigInt(`0x${mintId()}`));
    for (let bit = 0n; bit < 128n; bit += 1n) {
      const ones = ids.filter((id) => (id >> bit) & 1n).length;
      // Ten standard deviations around one half.
      expect(Math.abs(ones - 1000)).toBeLessThan(224);
    }
  });

  it('SES-13 accepts 1 to 200 letters, digits and . _ : @ / + = ~ -, beginning with a letter or digit', () => {
    const first = [...'ABCXYZabcxyz0189'];
    const ids = fc
      .tuple(fc.constantFrom(...first), fc.string({ unit: fc.constantFrom(...first, ...'._:@/+=~-'), maxLength: 199 }))
      .map((parts) => parts.join(''));
    fc.assert(fc.property(ids, (id) => accepts(assertId, id)));
    expect(accepts(assertId, 'x'.repeat(200))).toBe(true);
  });

  it('SES-13 rejects an id with any other character at any position', () => {
    const other = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 1 })
      .filter((c) => !/[A-Za-z0-9._:@/+=~-]/.test(c));
    fc.assert(
      fc.property(fc.constantFrom('', 'a', 'abc'), other, fc.constantFrom('', 'z'), (before, character, after) => {
        expect(accepts(assertId, `${before}${character}${after}`)).toBe(false);
      }),
    );
    for (const id of ['', 'x'.repeat(201), '-a', '.a', '/a', 'a\n', null, undefined, 7, {}, ['a'], Object('a')]) {
      expect(accepts(assertId, id)).toBe(false);
    }
  });

  it('SES-04 accepts any string as a name that stores return unchanged', () => {
    const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 100 }).filter((name) => name.length <= 256);
    fc.assert(fc.property(names, (name) => isName(name)));
    for (const name of ['__proto__', "o'brien", '100%', 'مرحبا', '👩‍👩‍👧‍👦', ' ', 'x'.repeat(256)]) {
      expect(accepts(assertName, name)).toBe(true);
    }
  });

  it('SES-04 accepts only names without control characters that survive UTF-8', () => {
    const any = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 8 }),
      fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 }).map((units) => String.fromCharCode(...units)),
    );
    fc.assert(
      fc.property(any, (text) => {
        const controls = [...text].some(
          (character) => character < ' ' || (character >= '\u007f' && character <= '\u009f'),
        );
        const survives = Buffer.from(text, 'utf8').toString('utf8') === text;
        expect(isName(text)).toBe(text.length > 0 && !controls && survives);
      }),
      { numRuns: 1000 },
    );
    for (const name of ['', 'x'.repeat(257), null, undefined, 7, {}, ['a'], Object('a')]) {
      expect(accepts(assertName, name)).toBe(false);
    }
  });

  it('SES-14 names the invalid value and the allowed ones', () => {
    expect(() => assertId('', 'sessionId')).toThrow(
      'sessionId must be a string of 1 to 200 letters, digits or . _ : @ / + = ~ - that begins with a letter or digit.',
    );
    expect(() => assertName(null, 'surfaceId')).toThrow(/^surfaceId must be a string of .* Received: null\.$/);
    expect(() => assertName('', 'query.userId')).toThrow(
      'query.userId must be a string of 1 to 256 characters without control characters or lone surrogates.',
    );
  });
});

function accepts(check: (value: unknown, path: string) => void, value: unknown): boolean {
  try {
    check(value, 'value');
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidInputError);
    expect(error).toMatchObject({ code: 'INVALID_INPUT', path: 'value' });
    return false;
  }
}
