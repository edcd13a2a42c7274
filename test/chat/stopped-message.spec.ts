import { INTERRUPTED } from '../../lib/ledger/interrupted-result.js';
import { NOT_APPROVED, stoppedAnswer } from '../../lib/chat/stopped-message.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';

const START: readonly UIChunk[] = [{ type: 'start', messageId: 'turn' }, { type: 'start-step' }];
const END: readonly UIChunk[] = [{ type: 'finish-step' }];
const signed = { providerMetadata: { maker: { itemId: 'item' } } };

function block(kind: 'text' | 'reasoning', delta: string, end: object = {}): UIChunk[] {
  const id = `${kind}-1`;
  return [
    { type: `${kind}-start`, id },
    { type: `${kind}-delta`, id, delta },
    { type: `${kind}-end`, id, ...end },
  ];
}

function call(toolCallId: string, fields: object = {}): UIChunk {
  return { type: 'tool-input-available', toolCallId, toolName: 'find', input: {}, ...fields };
}

function output(toolCallId: string, fields: object = {}): UIChunk {
  return { type: 'tool-output-available', toolCallId, output: 1, ...fields };
}

function asking(toolCallId: string): UIChunk {
  return { type: 'tool-approval-request', toolCallId, approvalId: toolCallId };
}

function stopped(...chunks: readonly UIChunk[]): unknown {
  return stoppedAnswer([...START, ...chunks])?.content;
}

const step = { type: 'step-start' };
const part = (toolCallId: string) => ({ type: 'tool-find', toolCallId, input: {} });
const failed = (toolCallId: string) => ({ ...part(toolCallId), state: 'output-error', errorText: INTERRUPTED });

const denied = (toolCallId: string, reason?: string) => ({
  ...part(toolCallId),
  state: 'output-denied',
  approval: { id: toolCallId, approved: false, ...(reason === undefined ? {} : { reason }) },
});

describe('a stopped answer', () => {
  it('AIS-10 AIS-30 AIS-32 keeps text and results, fails the calls without a result, and denies pending approvals', () => {
    const hello = block('text', 'Hel').slice(0, 2);
    const others = [
      { type: 'data-x', data: 1 },
      { type: 'source-url', sourceId: 's', url: 'https://example.com' },
    ];
    expect(
      stopped(
        ...hello,
        call('a'),
        call('b'),
        call('c'),
        call('d'),
        { type: 'tool-input-start', toolCallId: 'e', toolName: 'find' },
        ...others,
        output('a'),
        { type: 'tool-output-error', toolCallId: 'b', errorText: 'Not found.' },
        asking('c'),
      ),
    ).toEqual([
      step,
      { type: 'text', text: 'Hel', state: 'done' },
      { ...part('a'), state: 'output-available', output: 1 },
      { ...part('b'), state: 'output-error', errorText: 'Not found.' },
      denied('c', NOT_APPROVED),
      failed('d'),
      ...others,
    ]);
  });

  it('AIS-32 denies the calls that the user has denied, and fails those that may have run', () => {
    expect(
      stopped(
        ...['a', 'b', 'c'].flatMap((id) => [call(id), asking(id)]),
        { type: 'tool-approval-response', approvalId: 'a', approved: true },
        { type: 'tool-approval-response', approvalId: 'b', approved: false, reason: 'No.' },
        { type: 'tool-approval-response', approvalId: 'c', approved: false },
        { type: 'tool-output-denied', toolCallId: 'c' },
      ),
    ).toEqual([step, failed('a'), denied('b', 'No.'), denied('c')]);
  });

  it('AIS-31 fails a call with a preliminary result', () => {
    expect(stopped(call('a'), output('a', { preliminary: true }))).toEqual([step, failed('a')]);
  });

  it('AIS-10 does not exist if nothing was shown', () => {
    expect(stopped()).toBeUndefined();
    expect(stopped({ type: 'text-start', id: 'text-1' })).toBeUndefined();
    expect(stopped(...block('text', '\n\n'))).toBeUndefined();
    expect(stopped(...block('reasoning', 'Hm.').slice(0, 2))).toBeUndefined();
  });

  it('AIS-30 has no reasoning and no metadata of the provider if the model call has not ended', () => {
    expect(stopped(...block('reasoning', 'Hm.', signed), ...block('text', 'Hel', signed))).toEqual([
      step,
      { type: 'text', text: 'Hel', state: 'done' },
    ]);
  });

  it('AIS-30 keeps both if the model call has ended', () => {
    const thought = { type: 'reasoning', id: 'reasoning-1', text: 'Hm.', state: 'done', ...signed };
    const text = { type: 'text', text: 'Hello.', state: 'done', ...signed };
    const answer = [...block('reasoning', 'Hm.', signed), ...block('text', 'Hello.', signed)];
    expect(stopped(...answer, ...END)).toEqual([step, thought, text]);
    expect(stopped(...answer, call('a'))).toEqual([step, thought, text, failed('a')]);
    const next = [{ type: 'start-step' }, ...block('reasoning', 'And').slice(0, 2)];
    expect(stopped(...answer, ...END, ...next)).toEqual([step, thought, text]);
  });

  it('AIS-30 keeps encrypted reasoning without text', () => {
    const [start, , end] = block('reasoning', '', signed);
    expect(stopped(start, end, call('a'), output('a'))).toEqual([
      step,
      { type: 'reasoning', id: 'reasoning-1', text: '', state: 'done', ...signed },
      { ...part('a'), state: 'output-available', output: 1 },
    ]);
  });

  it('AIS-30 has no reasoning that nothing follows', () => {
    expect(stopped(...block('reasoning', 'Hm.', signed), ...END)).toBeUndefined();
  });

  it('AIS-30 has no calls of an incomplete answer that the provider executes', () => {
    const own = { providerExecuted: true };
    const hello = block('text', 'Hel').slice(0, 2);
    expect(stopped(call('a', own), output('a', own), ...hello)).toEqual([
      step,
      { type: 'text', text: 'Hel', state: 'done' },
    ]);
    // The result of the provider can follow in a later step.
    const text = block('text', 'Hello.', signed);
    expect(
      stopped(...block('reasoning', 'Hm.', signed), ...text, call('a', own), call('b'), output('b'), ...END),
    ).toEqual([
      step,
      { type: 'text', text: 'Hello.', state: 'done' },
      { ...part('b'), state: 'output-available', output: 1 },
    ]);
  });
});
