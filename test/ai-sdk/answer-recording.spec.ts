import fc from 'fast-check';
import { AnswerRecording } from '../../lib/ai-sdk/answer-recording.js';
import { type ModelOutputPart } from '../../lib/ai-sdk/language-model.js';
import { partsOf, type Part, textParts } from './fixtures/models.js';

const ids = fc.constantFrom('a', 'b');
const metadata = fc.option(fc.constantFrom({ scripted: { signature: 1 } }, { scripted: { signature: 2 } }), {
  nil: undefined,
});
const deltas = fc.record({
  type: fc.constantFrom('text-delta', 'reasoning-delta', 'tool-input-delta'),
  id: ids,
  delta: fc.oneof(
    fc.string(),
    fc.string({ unit: 'grapheme' }),
    fc.nat(9000).map((length) => 'x'.repeat(length)),
  ),
  providerMetadata: metadata,
});
const others = fc.record({
  type: fc.constantFrom('text-start', 'text-end', 'source', 'custom', 'raw', 'ping'),
  id: ids,
});
const answers = fc.array(fc.oneof({ weight: 3, arbitrary: deltas }, others), { maxLength: 30 });

/** Returns the answer with one part for each character of a delta. */
function inCharacters(parts: readonly (ModelOutputPart & { id?: unknown })[]): object[] {
  return parts.flatMap((part) =>
    typeof part.delta === 'string' ? Array.from(part.delta, (delta) => ({ ...part, delta })) : [part],
  );
}

function record(parts: readonly ModelOutputPart[]): AnswerRecording {
  const recording = new AnswerRecording();
  for (const part of parts) recording.add(part);
  return recording;
}

describe('a recording of an answer', () => {
  it('AIS-01 has the same characters with the same metadata, in the same order', () => {
    fc.assert(
      fc.property(answers, (sent) => {
        const expected = sent.filter(({ type }) => type !== 'raw' && type !== 'ping');
        expect(inCharacters(record(sent).parts)).toEqual(inCharacters(expected));
      }),
    );
  });

  it('AIS-01 has no two deltas that could be one', () => {
    fc.assert(
      fc.property(answers, (sent) => {
        const { parts } = record(sent);
        for (const [index, part] of parts.slice(1).entries()) {
          const { delta: before, ...last } = parts[index];
          const { delta, ...rest } = part;
          if (typeof before !== 'string' || typeof delta !== 'string') continue;
          const isSame = JSON.stringify(last) === JSON.stringify(rest);
          expect(isSame && before.length + delta.length <= 8192).toBe(false);
        }
      }),
    );
  });

  it('AIS-02 holds every part from the first one that is final on, and no earlier one', () => {
    const call: Part = { type: 'tool-call', toolCallId: 'c', toolName: 'find', input: '{}' };
    const input: Part = { type: 'tool-input-start', id: 'c', toolName: 'find' };
    const approval = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' } as Part;
    const [finish] = partsOf({}).slice(-1);
    const final = fc.constantFrom(call, input, approval, finish);
    const live: fc.Arbitrary<Part> = fc.constantFrom(
      ...textParts('Hi'),
      { ...call, providerExecuted: true },
      { ...input, providerExecuted: true },
      { type: 'tool-result', toolCallId: 'c', toolName: 'find', result: 1 },
      { type: 'raw', rawValue: 1 },
    );
    fc.assert(
      fc.property(fc.array(live), final, fc.array(fc.oneof(live, final)), (before, first, after) => {
        const recording = new AnswerRecording();
        expect(before.map((part) => recording.add(part))).toEqual(before.map(() => true));
        expect([first, ...after].map((part) => recording.add(part))).toEqual([first, ...after].map(() => false));
        expect(recording.held).toEqual([first, ...after]);
      }),
    );
  });

  it('AIS-05 is complete with a finish part, unless the provider was interrupted', () => {
    const [finish] = partsOf({}).slice(-1);
    const interrupted = { ...finish, finishReason: { unified: 'interrupted', raw: undefined } };
    expect(record(textParts('Hi')).isComplete).toBe(false);
    expect(record([finish]).isComplete).toBe(true);
    expect(record([{ ...finish, finishReason: 'stop' }]).isComplete).toBe(true);
    expect(record([interrupted]).isComplete).toBe(false);
  });
});
