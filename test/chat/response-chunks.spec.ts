import * as ai6 from 'ai';
import fc from 'fast-check';
import * as ai7 from '../ai-7/ai.js';
import { toProtocol } from '../../lib/chat/protocol-chunks.js';
import { ResponseChunks } from '../../lib/chat/response-chunks.js';
import { replay, segmentsOf } from '../../lib/chat/replay.js';
import { type AnyUIMessage, type UIChunk } from '../../lib/chat/ui-message.js';
import { client6, client7, CLIENTS, comparable } from './clients.js';
import { VERSIONS } from './front-ends.js';

const TURN = 'turn';
const START: UIChunk = { type: 'start', messageId: TURN };
const FINISH: UIChunk = { type: 'finish' };
const REQUEST: readonly UIChunk[] = [
  { type: 'start-step' },
  { type: 'tool-input-available', toolCallId: 'a', toolName: 'refund', input: {} },
  { type: 'tool-approval-request', toolCallId: 'a', approvalId: 'a' },
  { type: 'finish-step' },
];
const RESULT: readonly UIChunk[] = [
  { type: 'tool-output-available', toolCallId: 'a', output: 'done' },
  ...said('1', 'Done.'),
];
/** An answer that waits for an approval. */
const CHUNKS = [START, ...REQUEST, FINISH, START, ...RESULT, FINISH];
/** A step with a call that the server runs. */
const CALL: readonly UIChunk[] = [
  { type: 'start-step' },
  { type: 'tool-input-available', toolCallId: 'c', toolName: 'find', input: {} },
  { type: 'tool-output-available', toolCallId: 'c', output: 'found' },
  { type: 'finish-step' },
];
const SDKS = { 6: ai6, 7: ai7 as unknown as typeof ai6 };
const ENDS = ['completed', 'awaiting-input', 'cancelled', 'superseded'];

describe('the chunks of a response', () => {
  it('AIS-13 holds the end until the turn waits or has ended', () => {
    const response = new ResponseChunks(TURN, 0);
    expect(response.waiting()).toBeUndefined();
    expect([START, ...REQUEST, FINISH].flatMap((chunk) => response.add(chunk))).toEqual([START, ...REQUEST]);
    expect(response.waiting()).toEqual([FINISH]);
  });

  it('AIS-13 continues over a wait as one message, with all metadata', () => {
    const withMetadata = CHUNKS.map((chunk, at) => ({
      ...chunk,
      ...(at === 5 || at === 6 ? { messageMetadata: { at } } : {}),
    }));
    const response = new ResponseChunks(TURN, 0);
    expect(withMetadata.flatMap((chunk) => response.add(chunk))).toEqual([
      ...[START, ...REQUEST],
      ...[5, 6].map((at) => ({ type: 'message-metadata', messageMetadata: { at } })),
      ...RESULT,
    ]);
    expect(response.ended({ status: 'completed', reply: 'Done.' })).toEqual([FINISH]);
  });

  it('AIS-16 begins with the segment that follows an approval', () => {
    const response = new ResponseChunks(TURN, 1);
    expect(CHUNKS.flatMap((chunk) => response.add(chunk))).toEqual([START, ...RESULT]);
    expect(response.ended({ status: 'awaiting-input', reply: null })).toEqual([FINISH]);
  });

  it('AIS-16 ends a response at once while the turn waits for another approval', () => {
    const response = new ResponseChunks(TURN, 1);
    expect([START, ...REQUEST, FINISH].flatMap((chunk) => response.add(chunk))).toEqual([]);
    expect(response.waiting()).toEqual([START, FINISH]);
  });

  it.each([client6, client7])('AIS-10 shows the reply of a handler that has streamed nothing', async (client) => {
    const chunks = new ResponseChunks(TURN, 0).ended({ status: 'completed', reply: 'Hello.' });
    const { parts } = await client(chunks);
    expect(parts.at(-1)).toMatchObject({ type: 'text', text: 'Hello.', state: 'done' });
    expect(new ResponseChunks(TURN, 0).ended({ status: 'completed', reply: null })).toEqual([START, FINISH]);
  });

  it.each([client6, client7])('AIS-19 ends a failed and a cancelled answer as clients accept it', async (client) => {
    for (const end of [{ status: 'failed', code: 'TURN_FAILED' }, { status: 'cancelled' }, { status: 'superseded' }]) {
      const response = new ResponseChunks(TURN, 0);
      const shown = [START, ...said('0', 'Hel')].flatMap((chunk) => response.add(chunk));
      const { parts } = await client([...shown, ...response.ended(end)]);
      expect(parts.at(-1)).toMatchObject({ type: 'text', text: 'Hel' });
    }
  });

  it.each([client6, client7])('AIS-32 denies the pending approvals of a stopped answer', async (client) => {
    const response = new ResponseChunks(TURN, 0);
    const other = REQUEST.slice(1, -1).map((chunk) => ({ ...chunk, toolCallId: 'b', approvalId: 'b' }));
    const shown = [START, ...REQUEST.slice(0, -1), ...other].flatMap((chunk) => response.add(chunk));
    shown.push(...response.add({ type: 'tool-output-available', toolCallId: 'b', output: 1 }));
    const { parts } = await client([...shown, ...response.ended({ status: 'cancelled' })]);
    expect(parts.flatMap(({ state }) => state ?? [])).toEqual(['output-denied', 'output-available']);
  });

  it('AIS-32 denies no approval of a step that was replaced', () => {
    const response = new ResponseChunks(TURN, 0);
    for (const chunk of [START, ...REQUEST.slice(0, -1), { type: 'ui-reset' }]) response.add(chunk);
    expect(response.ended({ status: 'cancelled' })).toEqual([{ type: 'abort' }, FINISH]);
  });

  it('AIS-16 starts a step if an answer is stopped before the step that follows an answer of the user', () => {
    const stop = (from: number, chunks: readonly UIChunk[]) => {
      const response = new ResponseChunks(TURN, from);
      for (const chunk of chunks) response.add(chunk);
      return response.ended({ status: 'cancelled' });
    };
    const end = [{ type: 'abort' }, FINISH];
    const answered = CHUNKS.indexOf(FINISH) + 2;
    for (const from of [0, 1]) {
      expect(stop(from, CHUNKS.slice(0, answered))).toEqual([{ type: 'start-step' }, START, ...end]);
      expect(stop(from, CHUNKS.slice(0, -1))).toEqual(end);
    }
    expect(stop(1, CHUNKS.slice(0, answered - 1))).toEqual([{ type: 'start-step' }, START, ...end]);
    expect(stop(0, CHUNKS.slice(0, 2))).toEqual(end);
  });

  it.each(ENDS)('AIS-39 starts a step if an answer that is %s ends with a result', (status) => {
    const end = (chunks: readonly UIChunk[]) => {
      const response = new ResponseChunks(TURN, 0);
      for (const chunk of chunks) response.add(chunk);
      return response.ended({ status }).filter(({ type }) => type !== 'abort');
    };
    const step = [{ type: 'start-step' }, START];
    expect(end([START, ...CALL, FINISH])).toEqual([...step, FINISH]);
    expect(end([START, ...CALL.slice(0, -1)])).toEqual([...step, FINISH]);
    expect(end([START, ...CALL, ...said('0', 'Done.')])).toEqual([FINISH]);
    expect(end([START, ...CALL.slice(0, 2)])).toEqual([FINISH]);
    expect(end([START, ...CALL.slice(0, -1), { type: 'ui-reset' }])).toEqual([FINISH]);
    const ofProvider = CALL.map((chunk) => ({ ...chunk, providerExecuted: true }));
    expect(end([START, ...ofProvider])).toEqual([FINISH]);
  });

  describe.each(VERSIONS)('shown by ai %i', (version) => {
    const show = (chunks: readonly UIChunk[], shown?: AnyUIMessage) =>
      CLIENTS[version](toProtocol(chunks, version).chunks, shown);
    /** Returns whether `sendAutomaticallyWhen` sends a message. */
    const isSent = (message: AnyUIMessage): boolean => {
      const messages = { messages: [message as unknown as ai6.UIMessage] };
      const sdk = SDKS[version];
      return (
        sdk.lastAssistantMessageIsCompleteWithToolCalls(messages) ||
        sdk.lastAssistantMessageIsCompleteWithApprovalResponses(messages)
      );
    };
    const response = { type: 'tool-approval-response', approvalId: 'a', approved: true };
    const answer = [START, ...CALL, ...REQUEST, FINISH, START, response, ...RESULT, ...CALL, FINISH];

    it.each(ENDS)('AIS-32 AIS-39 sends no results or approvals to a turn that is %s, at any chunk', async (status) => {
      for (let length = 1; length <= answer.length; length += 1) {
        const stored = answer.slice(0, length);
        for (const chunks of [stored, replay(stored)]) {
          const live = new ResponseChunks(TURN, 0);
          const sent = chunks.flatMap((chunk) => live.add(chunk));
          expect(isSent(await show([...sent, ...live.ended({ status })]))).toBe(false);
        }
      }
    });

    it.each(ENDS)('AIS-32 AIS-39 sends an approval once if the turn is %s then, at any chunk', async (status) => {
      const [first] = segmentsOf(answer);
      const asked = await show(first);
      const parts = asked.parts.map((part) =>
        part.state === 'approval-requested'
          ? { ...part, state: 'approval-responded', approval: { ...(part.approval as object), approved: true } }
          : part,
      );
      const approved = { ...asked, parts };
      expect(isSent(approved)).toBe(true);
      for (let length = first.length; length <= answer.length; length += 1) {
        const rest = new ResponseChunks(TURN, 1);
        const sent = answer.slice(0, length).flatMap((chunk) => rest.add(chunk));
        expect(isSent(await show([...sent, ...rest.ended({ status })], approved))).toBe(false);
      }
    });
  });

  it('AIS-13 has the same chunks at the same index, wherever a client continues', () => {
    fc.assert(
      fc.property(fc.nat(CHUNKS.length), fc.nat(1), (stored, from) => {
        const whole = new ResponseChunks(TURN, from);
        const all = CHUNKS.flatMap((chunk) => whole.add(chunk));
        const part = new ResponseChunks(TURN, from);
        const before = CHUNKS.slice(0, stored).flatMap((chunk) => part.add(chunk));
        const after = CHUNKS.slice(stored).flatMap((chunk) => part.add(chunk));
        expect([...before, ...after]).toEqual(all);
      }),
    );
  });

  it('AIS-13 gives a client of all responses the same message as one of a single response', async () => {
    const segments = segmentsOf(CHUNKS).map((_, from) => {
      const response = new ResponseChunks(TURN, from);
      const until = CHUNKS.indexOf(FINISH, from === 0 ? 0 : CHUNKS.indexOf(FINISH) + 1) + 1;
      const sent = CHUNKS.slice(0, until).flatMap((chunk) => response.add(chunk));
      return [...sent, ...(response.waiting() ?? [])];
    });
    const single = new ResponseChunks(TURN, 0);
    const all = [...CHUNKS.flatMap((chunk) => single.add(chunk)), FINISH];
    const first = await client7(segments[0]);
    expect(comparable(await client7(segments[1], first))).toEqual(comparable(await client7(all)));
  });
});

function said(id: string, text: string): UIChunk[] {
  return [
    { type: 'start-step' },
    { type: 'text-start', id },
    { type: 'text-delta', id, delta: text },
    { type: 'text-end', id },
    { type: 'finish-step' },
  ];
}
