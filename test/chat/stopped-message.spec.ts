import { INTERRUPTED } from '../../lib/ledger/interrupted-result.js';
import { stoppedMessage } from '../../lib/chat/stopped-message.js';
import { type UIMessage, type UIPart } from '../../lib/chat/ui-message.js';

describe('a stopped answer', () => {
  it('AIS-10 keeps texts and results, and fails the calls without a result', () => {
    const call = { type: 'tool-find', toolCallId: 'a', input: {} };
    const failed = { ...call, state: 'output-error', errorText: INTERRUPTED };
    expect(
      partsOf([
        { type: 'step-start' },
        { type: 'reasoning', text: 'Hm.', state: 'streaming' },
        { type: 'text', text: '', state: 'streaming' },
        { type: 'text', text: 'Hel', state: 'streaming' },
        { ...call, state: 'output-available', output: 1 },
        { ...call, state: 'output-available', output: 1, preliminary: true },
        { ...call, state: 'input-streaming' },
        { ...call, state: 'input-available' },
        { ...call, state: 'approval-requested', approval: { id: 'a' } },
        { ...call, state: 'output-denied', approval: { id: 'a', approved: false } },
        { type: 'data-x', data: 1 },
      ]),
    ).toEqual([
      { type: 'step-start' },
      { type: 'reasoning', text: 'Hm.', state: 'done' },
      { type: 'text', text: 'Hel', state: 'done' },
      { ...call, state: 'output-available', output: 1 },
      { ...call, state: 'output-available', output: 1 },
      failed,
      failed,
      { ...call, state: 'output-denied', approval: { id: 'a', approved: false } },
      { type: 'data-x', data: 1 },
    ]);
  });

  it('AIS-10 has no parts if nothing was shown', () => {
    expect(partsOf([{ type: 'step-start' }, { type: 'text', text: '', state: 'streaming' }])).toEqual([]);
  });
});

function partsOf(parts: UIPart[]): readonly UIPart[] {
  const message: UIMessage = { id: 'turn', role: 'assistant', parts };
  return stoppedMessage(message).parts;
}
