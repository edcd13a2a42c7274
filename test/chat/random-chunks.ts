import fc from 'fast-check';
import { type Protocol } from '../../lib/chat/protocol-chunks.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';

const word = fc.string({ minLength: 1, maxLength: 6, unit: fc.constantFrom(...'ab "\\{[,:1') });
const json = fc.jsonValue({ maxDepth: 2 });
/** A key never changes between an object and another value, because such changes cannot be merged. */
const metadata = fc.record(
  { a: fc.array(json, { maxLength: 2 }), b: fc.dictionary(word, fc.oneof(fc.nat(), fc.constant(null))) },
  { requiredKeys: [] },
);
const providerMetadata = fc.record({ p: metadata });

/** Fields that a chunk may have in addition to the required ones. */
const extras = fc.record(
  { providerMetadata, title: word, toolMetadata: metadata, providerExecuted: fc.boolean() },
  { requiredKeys: [] },
);

const KINDS = [
  'start', 'finish', 'start-step', 'finish-step', 'reset', 'block-start', 'block-delta', 'block-end', 'source-url',
  'source-document', 'file', 'reasoning-file', 'custom', 'steering-message', 'input-start', 'input-delta', 'input-end',
  'input-error', 'approval-request', 'approval-response', 'output', 'preliminary', 'output-error', 'output-denied',
  'data', 'transient', 'metadata', 'error', 'abort',
] as const; // prettier-ignore
const ONLY_7 = ['reasoning-file', 'custom', 'steering-message', 'approval-response'];

/** What depends on earlier actions. */
// prettier-ignore
const OFTEN = [
  'start-step', 'reset', 'block-delta', 'input-start', 'input-delta', 'input-end', 'approval-request',
  'approval-response', 'output', 'preliminary', 'data',
] as const;

interface Action {
  readonly kind: (typeof KINDS)[number];
  /** Selects one of the open blocks or calls. */
  readonly at: number;
  readonly flag: boolean;
  readonly text: string;
  readonly value: unknown;
  readonly metadata?: unknown;
  readonly extras: Record<string, unknown>;
}

const action: fc.Arbitrary<Action> = fc.record(
  {
    kind: fc.constantFrom(...KINDS, ...KINDS, ...OFTEN, ...OFTEN, ...OFTEN),
    at: fc.nat({ max: 5 }),
    flag: fc.boolean(),
    text: word,
    value: json,
    metadata,
    extras,
  },
  { requiredKeys: ['kind', 'at', 'flag', 'text', 'value', 'extras'] },
);

/**
 * Returns sequences of all chunks that a client of this protocol accepts, in any valid order. A reset is the chunk
 * `reset`.
 */
export function randomChunks(protocol: Protocol, reset: string): fc.Arbitrary<UIChunk[]> {
  return fc.array(action, { maxLength: 60, size: 'max' }).map((actions) =>
    chunksOf(
      actions.filter(({ kind }) => protocol === 7 || !ONLY_7.includes(kind)),
      protocol,
      reset,
    ),
  );
}

interface Call {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly dynamic?: true;
  state: 'input' | 'called' | 'requested' | 'answered' | 'preliminary' | 'ended';
  /** The part of the input that is not sent yet. */
  rest: string;
  approvalId?: string;
}

function chunksOf(actions: readonly Action[], protocol: Protocol, reset: string): UIChunk[] {
  const chunks: UIChunk[] = [{ type: 'start', messageId: 'turn' }];
  let blocks: { kind: string; id: string }[] = [];
  /** The calls of earlier steps, and those of the current one. */
  let earlier: Call[] = [];
  let calls: Call[] = [];
  let count = 0;

  const one = <T>(list: readonly T[], at: number): T | undefined => list[at % Math.max(1, list.length)];
  const endBlocks = () => {
    for (const block of blocks) chunks.push({ type: `${block.kind}-end`, id: block.id });
    blocks = [];
  };
  /** Ids may occur again in another step. Clients then mean the later call. */
  const idOfCall = () => `c${count % 9}`;
  const isNew = (id: string) => !calls.some(({ toolCallId }) => toolCallId === id);
  const callIn = (at: number, ...states: Call['state'][]) => {
    const latest = new Map([...calls, ...earlier].reverse().map((call) => [call.toolCallId, call]));
    return one(
      [...latest.values()].filter(({ state }) => states.includes(state)),
      at,
    );
  };

  for (const { kind, at, flag, text, value, metadata: messageMetadata, extras: given } of actions) {
    const meta = messageMetadata === undefined ? {} : { messageMetadata };
    const { title, ...withoutTitle } = given;
    const { providerMetadata: only } = given;
    const provider = only === undefined ? {} : { providerMetadata: only };
    count += 1;
    switch (kind) {
      case 'start':
        chunks.push({ type: kind, ...(flag ? { messageId: 'turn' } : {}), ...meta });
        break;
      case 'finish':
        endBlocks();
        chunks.push({ type: kind, ...(flag ? { finishReason: 'stop' } : {}), ...meta });
        break;
      case 'metadata':
        if (messageMetadata !== undefined) chunks.push({ type: 'message-metadata', messageMetadata });
        break;
      case 'start-step':
        endBlocks();
        for (const call of calls) if (call.state === 'input') call.state = 'ended';
        earlier = [...calls, ...earlier];
        calls = [];
        chunks.push({ type: kind });
        break;
      case 'finish-step':
        endBlocks();
        chunks.push({ type: kind });
        break;
      case 'reset':
        if (protocol === 6 && reset === 'reset-step') break;
        blocks = [];
        calls = [];
        chunks.push({ type: reset });
        break;
      case 'block-start': {
        const block = { kind: flag ? 'text' : 'reasoning', id: `b${count}` };
        blocks.push(block);
        chunks.push({ type: `${block.kind}-start`, id: block.id, ...provider });
        break;
      }
      case 'block-delta':
      case 'block-end': {
        const block = one(blocks, at);
        if (!block) break;
        const content = kind === 'block-delta' ? { delta: text } : {};
        chunks.push({ type: kind.replace('block', block.kind), id: block.id, ...content, ...provider });
        if (kind === 'block-end') blocks = blocks.filter((other) => other !== block);
        break;
      }
      case 'source-url':
        chunks.push({ type: kind, sourceId: `s${count}`, url: text, ...(title ? { title } : {}), ...provider });
        break;
      case 'source-document':
        chunks.push({ type: kind, sourceId: `s${count}`, mediaType: text, title: text, ...provider });
        break;
      case 'file':
      case 'reasoning-file':
        chunks.push({ type: kind, url: text, mediaType: 'image/png', ...provider });
        break;
      case 'custom':
        chunks.push({ type: kind, kind: 'a.b', ...provider });
        break;
      case 'steering-message':
        chunks.push({ type: kind, id: `m${count}`, parts: [{ type: 'text', text }] });
        break;
      case 'input-start': {
        if (!isNew(idOfCall())) break;
        const dynamic = flag ? { dynamic: true as const } : {};
        const call: Call = { toolCallId: idOfCall(), toolName: text, ...dynamic, state: 'input', rest: restOf(value) };
        calls.push(call);
        const encoding = at === 0 ? { inputEncoding: 'text' } : {};
        chunks.push({ type: 'tool-input-start', ...named(call), ...encoding, ...given });
        break;
      }
      case 'input-delta': {
        const call = callIn(at, 'input');
        if (!call) break;
        chunks.push({ type: 'tool-input-delta', toolCallId: call.toolCallId, inputTextDelta: call.rest.slice(0, at) });
        call.rest = call.rest.slice(at);
        break;
      }
      case 'input-end':
      case 'input-error': {
        const known = callIn(at, 'input');
        if (!known && !isNew(idOfCall())) break;
        const call = known ?? { toolCallId: idOfCall(), toolName: text, state: 'input', rest: '' };
        if (!known) calls.push(call);
        call.state = kind === 'input-end' ? 'called' : 'ended';
        const end =
          kind === 'input-end' ? { type: 'tool-input-available' } : { type: 'tool-input-error', errorText: text };
        chunks.push({ ...end, ...named(call), input: value, ...given });
        break;
      }
      case 'approval-request': {
        const call = callIn(at, 'called');
        if (!call) break;
        call.state = 'requested';
        call.approvalId = `a${count}`;
        const more = flag ? { signature: text, inputSchemaInput: value } : { approvalDescriptor: value };
        const only7 = protocol === 7 ? { reason: text, isAutomatic: flag } : {};
        const { toolCallId, approvalId } = call;
        chunks.push({ type: 'tool-approval-request', toolCallId, approvalId, ...more, ...only7 });
        break;
      }
      case 'approval-response': {
        const call = callIn(at, 'requested');
        if (!call) break;
        call.state = 'answered';
        const { approvalId } = call;
        const response = { approvalId, approved: flag, reason: text, ...provider };
        chunks.push({ type: 'tool-approval-response', ...response, ...(at > 3 ? { providerExecuted: flag } : {}) });
        break;
      }
      case 'output':
      case 'preliminary': {
        const call = callIn(at, 'called', 'requested', 'answered', 'preliminary');
        if (!call) break;
        call.state = kind === 'output' ? 'ended' : 'preliminary';
        const preliminary = kind === 'preliminary' ? { preliminary: true } : {};
        const { toolCallId } = call;
        chunks.push({ type: 'tool-output-available', toolCallId, output: value, ...preliminary, ...withoutTitle });
        break;
      }
      case 'output-error': {
        const call = callIn(at, 'called', 'requested', 'answered', 'preliminary');
        if (!call) break;
        call.state = 'ended';
        chunks.push({ type: 'tool-output-error', toolCallId: call.toolCallId, errorText: text, ...withoutTitle });
        break;
      }
      case 'output-denied': {
        const call = callIn(at, 'requested', 'answered');
        if (!call) break;
        call.state = 'ended';
        chunks.push({ type: 'tool-output-denied', toolCallId: call.toolCallId });
        break;
      }
      case 'data':
        chunks.push({ type: flag ? 'data-a' : 'data-b', ...(at < 3 ? { id: `d${at}` } : {}), data: value });
        break;
      case 'transient':
        chunks.push({ type: 'data-a', id: `d${at}`, data: value, transient: true });
        break;
      case 'error':
        chunks.push({ type: kind, errorText: text });
        break;
      case 'abort':
        chunks.push({ type: kind });
        break;
    }
  }
  return chunks;
}

function named({ toolCallId, toolName, dynamic }: Call): Record<string, unknown> {
  return { toolCallId, toolName, ...(dynamic ? { dynamic } : {}) };
}

function restOf(value: unknown): string {
  return JSON.stringify({ value, text: 'a "b" c' });
}
