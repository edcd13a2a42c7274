import { withReceivedAnswers } from '../../lib/chat/received-answers.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { approvalSignal, toolOutputSignal } from '../../lib/chat/user-signals.js';
import { type JsonValue } from '../../lib/common/json.js';
import { type StoredSignal } from '../../lib/ledger/turn.store.js';

const START: UIChunk = { type: 'start', messageId: 'turn' };
const FINISH: UIChunk = { type: 'finish' };
/** A response that requests the approvals of calls. */
const asking = (...calls: string[]): UIChunk[] => [
  { type: 'start-step' },
  ...calls.flatMap((toolCallId): UIChunk[] => [
    { type: 'tool-input-available', toolCallId, toolName: 'refund', input: {} },
    { type: 'tool-approval-request', toolCallId, approvalId: toolCallId },
  ]),
  { type: 'finish-step' },
];
/** A response that calls tools that the client runs. */
const calling = (...calls: string[]): UIChunk[] => [
  { type: 'start-step' },
  ...calls.map((toolCallId): UIChunk => ({ type: 'tool-input-available', toolCallId, toolName: 'locate', input: {} })),
  { type: 'finish-step' },
];
const answer = (approvalId: string, given: object): UIChunk => ({
  type: 'tool-approval-response',
  approvalId,
  ...given,
});
const signal = (call: string, payload: JsonValue, earlier = 0) => ({
  name: approvalSignal(call, { earlier }),
  payload,
});
const output = (call: string, payload: JsonValue) => ({ name: toolOutputSignal(call), payload });
const received = (chunks: readonly UIChunk[], signals: readonly StoredSignal[]) =>
  withReceivedAnswers(chunks, async () => signals);

describe('withReceivedAnswers', () => {
  it('AIS-32 adds the received answers before the end of the response', async () => {
    const chunks = [START, ...asking('a', 'b', 'c'), FINISH];
    const signals = [signal('c', { approved: false, reason: 'Too much.' }), signal('a', { approved: true })];
    expect(await received(chunks, signals)).toEqual([
      ...chunks.slice(0, -1),
      answer('a', { approved: true }),
      answer('c', { approved: false, reason: 'Too much.' }),
      FINISH,
    ]);
    // The response is not complete: the signal came early.
    const begun = chunks.slice(0, -1);
    expect(await received(begun, signals.slice(1))).toEqual([...begun, answer('a', { approved: true })]);
  });

  it('AIS-32 adds no answer to another request, and none that is not valid', async () => {
    const chunks = [START, ...asking('a'), FINISH];
    const others = [signal('b', { approved: true }), signal('a', { approved: true }, 1), { name: 'go', payload: null }];
    for (const signals of [others, [signal('a', 'yes')], [signal('a', { approved: 'yes' })], []]) {
      expect(await received(chunks, signals)).toEqual(chunks);
    }
  });

  it('AIS-32 FIX-63 adds no earlier answer to a later request with the same id', async () => {
    const first = [START, ...asking('0'), FINISH];
    const result: UIChunk = { type: 'tool-output-available', toolCallId: '0', output: 1 };
    const second = [START, answer('0', { approved: true }), result, ...asking('0'), FINISH];
    const chunks = [...first, ...second];
    const signals = [signal('0', { approved: true })];
    expect(await received(chunks, signals)).toEqual(chunks);
    expect((await received(chunks, [...signals, signal('0', { approved: false }, 1)])).slice(-2)).toEqual([
      answer('0', { approved: false }),
      FINISH,
    ]);
  });

  it('AIS-32 adds the answers that are missing in the response that continues', async () => {
    const chunks = [START, ...asking('a', 'b'), FINISH];
    const signals = [signal('a', { approved: true }), signal('b', { approved: false })];
    for (const begun of [[START], [START, answer('a', { approved: true })]]) {
      const missing = [answer('a', { approved: true }), answer('b', { approved: false })].slice(begun.length - 1);
      expect(await received([...chunks, ...begun], signals)).toEqual([...chunks, ...begun, ...missing]);
    }
  });

  it('AIS-32 reads the chunks once, whatever the number of requests', async () => {
    let reads = 0;
    const counted = asking(...Array.from({ length: 1000 }, (_, index) => `call-${index}`)).map((chunk): UIChunk => {
      return Object.defineProperty({ ...chunk }, 'toolCallId', { get: () => ((reads += 1), chunk.toolCallId) });
    });
    await received([START, ...counted, FINISH], []);
    expect(reads).toBeLessThan(10_000);
  });

  it('AIS-39 adds the outputs of the tools that the client has run', async () => {
    const chunks = [START, ...calling('a', 'b', 'c'), FINISH];
    const signals = [output('a', { output: 'Paris' }), output('c', { errorText: 'Forbidden.' })];
    const added = [
      { type: 'tool-output-available', toolCallId: 'a', output: 'Paris' },
      { type: 'tool-output-error', toolCallId: 'c', errorText: 'Forbidden.' },
    ];
    expect(await received(chunks, signals)).toEqual([...chunks.slice(0, -1), ...added, FINISH]);
    expect((await received(chunks, [output('b', {})])).at(-2)).toMatchObject({ toolCallId: 'b', output: null });
    for (const signals of [[output('d', {})], [output('a', 'Paris')], [output('a', { errorText: 1 })]]) {
      expect(await received(chunks, signals)).toEqual(chunks);
    }
  });

  it('AIS-39 adds no output to a call that the server or the provider runs', async () => {
    const running = [START, ...calling('a').slice(0, -1)];
    const ofProvider = [START, { ...calling('a')[1], providerExecuted: true }, FINISH];
    for (const chunks of [running, ofProvider]) {
      expect(await received(chunks, [output('a', { output: 'forged' })])).toEqual(chunks);
    }
  });

  it('AIS-32 adds nothing if the request has an answer, or the response has no request', async () => {
    const answered = [START, ...asking('a'), { type: 'tool-output-denied', toolCallId: 'a' }, FINISH];
    for (const chunks of [[], [START, FINISH], answered]) {
      const read = (): Promise<never> => Promise.reject(new Error('The signals need not be read.'));
      expect(await withReceivedAnswers(chunks, read)).toEqual(chunks);
    }
  });
});
