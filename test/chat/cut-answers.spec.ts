import { createOpenAI } from '@ai-sdk/openai';
import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import fc from 'fast-check';
import { type MessageDraft } from 'nestjs-agent-sessions';
import { z } from 'zod';
import { convertStored } from '../../lib/ai-sdk/model-messages.js';
import { stoppedAnswer } from '../../lib/chat/stopped-message.js';
import { toUIMessages } from '../../lib/chat/stored-messages.js';
import { type UIChunk, type UIPart } from '../../lib/chat/ui-message.js';
import { rejectedCalls } from '../conversation/histories.js';
import { fold } from './clients.js';
import { endedSteps, marked, rejections } from './provider-rules.js';

const VERSIONS = [
  { name: 'ai 6', sdk: ai6 },
  { name: 'ai 7', sdk: ai7 as unknown as typeof ai6 },
] as const;

const asked: MessageDraft = { role: 'user', content: 'Where are my orders?' };
const next: MessageDraft = { role: 'user', content: 'And now?' };

interface Call {
  readonly needsApproval: boolean;
  readonly isPreliminary: boolean;
  readonly fails: boolean;
}

interface Step {
  readonly reasoning: string | null;
  readonly text: string | null;
  /** A call that the provider executes. Its result comes at once, or in the next step. */
  readonly search: 'at once' | 'later' | null;
  readonly calls: readonly Call[];
}

const call: fc.Arbitrary<Call> = fc.record({
  needsApproval: fc.boolean(),
  isPreliminary: fc.boolean(),
  fails: fc.boolean(),
});

const answer: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    reasoning: fc.constantFrom(null, '', 'Two orders.'),
    text: fc.constantFrom(null, '', ' \n', 'One moment.'),
    search: fc.constantFrom(null, 'at once' as const, 'later' as const),
    calls: fc.array(call, { maxLength: 2 }),
  }),
  { minLength: 1, maxLength: 3 },
);

/** Returns the chunks of an answer. Models send the signature of reasoning at its end, and the id of text at its start. */
function chunksOf(steps: readonly Step[]): UIChunk[] {
  const late: UIChunk[] = [];
  const body = steps.flatMap(({ reasoning, text, search, calls }, at) => {
    const after = reasoning === null ? {} : { after: `${at}.reasoning` };
    const found = {
      type: 'tool-output-available',
      toolCallId: `${at}.search`,
      output: 'found',
      providerExecuted: true,
    };
    const isLate = search === 'later' && at < steps.length - 1;
    const before = late.splice(0);
    if (isLate) late.push(found);
    return [
      { type: 'start-step' },
      ...before,
      ...(reasoning === null ? [] : block('reasoning', reasoning, {}, marked({ item: `${at}.reasoning` }))),
      ...(text === null ? [] : block('text', text, marked({ item: `${at}.text`, ...after }), {})),
      ...(search === null
        ? []
        : called(`${at}.search`, { ...marked({ item: `${at}.search`, ...after }), providerExecuted: true })),
      ...(search === null || isLate ? [] : [found]),
      ...calls.flatMap((_, n) => called(`${at}.call-${n}`, marked({ item: `${at}.call-${n}`, ...after }))),
      ...calls.flatMap((each, n) => resultsOf(each, `${at}.call-${n}`)),
      { type: 'finish-step' },
    ];
  });
  return [{ type: 'start', messageId: 'turn' }, ...body, { type: 'finish' }];
}

function block(kind: 'text' | 'reasoning', text: string, start: object, end: object): UIChunk[] {
  const deltas = text.split(/(?<= )/).filter((delta) => delta !== '');
  return [
    { type: `${kind}-start`, id: kind, ...start },
    ...deltas.map((delta) => ({ type: `${kind}-delta`, id: kind, delta })),
    { type: `${kind}-end`, id: kind, ...end },
  ];
}

function called(toolCallId: string, fields: object): UIChunk[] {
  const input = { toolCallId, toolName: 'find', ...fields };
  return [
    { type: 'tool-input-start', ...input },
    { type: 'tool-input-delta', toolCallId, inputTextDelta: '{"a":' },
    { type: 'tool-input-available', ...input, input: { a: 1 } },
  ];
}

function resultsOf({ needsApproval, isPreliminary, fails }: Call, toolCallId: string): UIChunk[] {
  const approvalId = `ask-${toolCallId}`;
  const output = { type: 'tool-output-available', toolCallId, output: 'shipped' };
  return [
    ...(needsApproval ? [{ type: 'tool-approval-request', toolCallId, approvalId }] : []),
    ...(needsApproval ? [{ type: 'tool-approval-response', approvalId, approved: true }] : []),
    ...(isPreliminary ? [{ ...output, preliminary: true }] : []),
    fails ? { type: 'tool-output-error', toolCallId, errorText: 'There is no such order.' } : output,
  ];
}

/** Returns whether a provider has stored an item, whose id begins with the number of its step. */
function isStoredAfter(chunks: readonly UIChunk[]): (item: string) => boolean {
  const ended = endedSteps(chunks);
  return (item) => Number.parseInt(item, 10) < ended;
}

function isOfAnswer({ role }: ai6.ModelMessage): boolean {
  return role === 'assistant' || role === 'tool';
}

function textsIn(parts: readonly UIPart[]): unknown[] {
  return parts.flatMap(({ type, text }) => (type === 'text' && (text as string).trim() !== '' ? [text] : []));
}

function ownCallsIn(parts: readonly UIPart[]): unknown[] {
  return parts.flatMap(({ toolCallId, providerExecuted, state }) =>
    toolCallId === undefined || providerExecuted || state === 'input-streaming' ? [] : [toolCallId],
  );
}

describe.each(VERSIONS)('an answer that is stopped, for models of $name', ({ sdk }) => {
  it('AIS-30 is accepted by every provider, cut at every chunk', async () => {
    await fc.assert(
      fc.asyncProperty(answer, async (steps) => {
        const chunks = chunksOf(steps);
        for (let cut = 0; cut <= chunks.length; cut += 1) {
          const shown = chunks.slice(0, cut);
          const stopped = stoppedAnswer(shown);
          const log = [asked, ...(stopped ? [stopped] : []), next];
          const bySdk = await sdk.convertToModelMessages(toUIMessages(log) as unknown as ai6.UIMessage[]);
          const byUs = await convertStored(sdk.convertToModelMessages, log);
          z.array(sdk.modelMessageSchema).parse(bySdk);
          const isStored = isStoredAfter(shown);
          const problems = [rejections(bySdk, isStored), rejections(byUs, isStored), rejectedCalls(log)].flat();
          expect({ cut, problems }).toEqual({ cut, problems: [] });
          expect(byUs.filter(isOfAnswer)).toEqual(bySdk.filter(isOfAnswer));

          // What clients have seen stays.
          const { parts } = fold(shown);
          const kept = (stopped?.content ?? []) as unknown as UIPart[];
          expect([textsIn(kept), ownCallsIn(kept)]).toEqual([textsIn(parts), ownCallsIn(parts)]);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('an answer that is stopped', () => {
  it('AIS-31 never has the result of a call that was interrupted', () => {
    fc.assert(
      fc.property(answer, (steps) => {
        const chunks = chunksOf(steps);
        for (let cut = 0; cut <= chunks.length; cut += 1) {
          const shown = chunks.slice(0, cut);
          const isDone = ({ type, preliminary }: UIChunk) => type === 'tool-output-available' && preliminary !== true;
          const done = shown.filter(isDone).map(({ toolCallId }) => toolCallId);
          const kept = (stoppedAnswer(shown)?.content ?? []) as unknown as UIPart[];
          for (const { toolCallId, state } of kept) {
            if (state === 'output-available') expect(done).toContain(toolCallId);
          }
        }
      }),
    );
  });
});

describe('an answer of @ai-sdk/openai that is stopped', () => {
  /** As the provider writes it: an answer with reasoning and two calls, then the final answer. */
  const openai = (itemId: string) => ({ providerMetadata: { openai: { itemId, reasoningEncryptedContent: null } } });
  const shipped = (toolCallId: string) => ({ type: 'tool-output-available', toolCallId, output: 'shipped' });
  const CHUNKS: readonly UIChunk[] = [
    { type: 'start', messageId: 'turn' },
    { type: 'start-step' },
    ...block('reasoning', 'Two orders.', openai('0.rs'), openai('0.rs')),
    ...block('text', 'One moment.', openai('0.msg'), openai('0.msg')),
    ...called('call_7', openai('0.fc-7')),
    ...called('call_8', openai('0.fc-8')),
    shipped('call_8'),
    shipped('call_7'),
    { type: 'finish-step' },
    { type: 'start-step' },
    ...block('reasoning', 'Both are done.', openai('1.rs'), openai('1.rs')),
    ...block('text', 'Both have shipped.', openai('1.msg'), openai('1.msg')),
    { type: 'finish-step' },
    { type: 'finish' },
  ];

  /** Returns the input of the request that asks for the next answer. */
  async function inputOf(log: readonly MessageDraft[]): Promise<Record<string, string>[]> {
    let input: Record<string, string>[] = [];
    const fetch = (_: unknown, { body }: { body?: unknown } = {}): Promise<never> => {
      ({ input } = JSON.parse(body as string) as { input: Record<string, string>[] });
      return Promise.reject(new Error('The request is all that counts.'));
    };
    const model = createOpenAI({ apiKey: 'none', fetch }).responses('gpt-5');
    const messages = await ai6.convertToModelMessages(toUIMessages(log) as unknown as ai6.UIMessage[]);
    await ai6.generateText({ model, messages, maxRetries: 0 }).catch(() => undefined);
    return input;
  }

  it('AIS-30 refers to no item of an aborted answer, and gives each call one output, cut at every chunk', async () => {
    let references = 0;
    for (let cut = 0; cut <= CHUNKS.length; cut += 1) {
      const shown = CHUNKS.slice(0, cut);
      const isStored = isStoredAfter(shown);
      const stopped = stoppedAnswer(shown);
      const input = await inputOf([asked, ...(stopped ? [stopped] : []), next]);
      const ids = input.flatMap(({ type, id }) => (id === undefined || type === 'message' ? [] : [id]));
      references += ids.length;
      expect({ cut, unknown: ids.filter((id) => !isStored(id)) }).toEqual({ cut, unknown: [] });
      const calls = input.filter(({ type }) => type === 'function_call').map((item) => item.call_id);
      const outputs = input.filter(({ type }) => type === 'function_call_output').map((item) => item.call_id);
      expect(outputs.toSorted()).toEqual(calls.toSorted());
      expect(input.at(-1)).toMatchObject({ role: 'user' });
    }
    expect(references).toBeGreaterThan(0);
  });
});
