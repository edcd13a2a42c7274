import { parsePartialJson as parse6 } from 'ai';
import { parsePartialJson as parse7 } from '../ai-7/ai.js';
import fc from 'fast-check';
import { parsePartialJson } from '../../lib/chat/partial-json.js';

/** JSON without escapes in keys, which clients do not expect. */
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(fc.string({ unit: 'binary' }), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean()),
    fc.constant(null),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(fc.stringMatching(/^[a-z]{0,3}$/), tie('json'), { maxKeys: 3 }),
  ),
}));

describe('parsePartialJson', () => {
  it('AIS-14 returns what ai 6 and 7 return, for each beginning of a JSON text', async () => {
    const space = fc.constantFrom(undefined, 1, '\t');
    await fc.assert(
      fc.asyncProperty(json, space, fc.nat(), async (value, indent, at) => {
        const text = JSON.stringify(value, null, indent);
        // Clients cut numbers off at the plus.
        fc.pre(!/\de\+/.test(text));
        const beginning = text.slice(0, at % (text.length + 1));
        const parsed = parsePartialJson(beginning);
        expect(parsed).toEqual((await parse7(beginning)).value);
        // Version 6 gives up at an incomplete escape and at a single minus.
        const { value: parsed6, state } = await parse6(beginning);
        if (state !== 'failed-parse') expect(parsed).toEqual(parsed6);
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    '',
    ' ',
    '-',
    '{',
    '{"',
    '{"a',
    '{"a"',
    '{"a":',
    '[',
    '[1,',
    '[1.',
    '1e',
    '[tr',
    '[nul',
    '"\\',
    '"\\u00',
    'x',
    '{"a":{"__proto__":{"b":1}',
    '{"__proto__":null}',
    '[{"constructor":{"prototype":1}',
    '{"constructor":{"prototype":1}}',
    '{"constructor":"x","prototype":[1',
  ])('AIS-14 returns what ai 7 returns for %j', async (text) => {
    expect(parsePartialJson(text)).toEqual((await parse7(text)).value);
  });
});
