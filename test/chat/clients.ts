import { readUIMessageStream as read6, uiMessageChunkSchema as schema6, type UIMessageChunk as Chunk6 } from 'ai';
import {
  readUIMessageStream as read7,
  uiMessageChunkSchema as schema7,
  type UIMessageChunk as Chunk7,
} from '../ai-7/ai.js';
import { MessageFold } from '../../lib/chat/message-fold.js';
import { type AnyUIMessage, type UIChunk, type UIPart } from '../../lib/chat/ui-message.js';

type Stream<T> = ReadableStream<T>;

interface Options {
  readonly message: never;
  readonly onError: (error: unknown) => void;
}

/** The message that a client shows after some chunks. Rejects if the client does not accept them. */
export type Client = (chunks: readonly UIChunk[], shown?: AnyUIMessage) => Promise<AnyUIMessage>;

/** The client of ai 6. */
export const client6: Client = (chunks, shown) => {
  return read(chunks, shown, schema6, (stream, options) => read6({ ...options, stream: stream as Stream<Chunk6> }));
};

/** The client of ai 7. */
export const client7: Client = (chunks, shown) => {
  return read(chunks, shown, schema7, (stream, options) => read7({ ...options, stream: stream as Stream<Chunk7> }));
};

export const CLIENTS = { 6: client6, 7: client7 } as const;

/** Returns a message as JSON, without the ids of reasoning and approvals, which differ from attempt to attempt. */
export function comparable({ id, metadata, parts }: AnyUIMessage): unknown {
  return JSON.parse(JSON.stringify({ id, metadata, parts: parts.map(withoutIds) })) as unknown;
}

/** Returns a comparable message with the parts of each step ordered by type: parts of other types may come first. */
export function inOrder(message: AnyUIMessage): unknown {
  const steps: UIPart[][] = [[]];
  for (const part of message.parts) {
    if (part.type === 'step-start') steps.push([]);
    steps[steps.length - 1].push(part);
  }
  const key = ({ type, toolCallId, id }: UIPart) => [type, toolCallId, type.startsWith('data-') && id].join();
  const ordered = steps.flatMap((step) => step.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0)));
  return comparable({ ...message, parts: ordered });
}

/** The message that MessageFold builds from chunks. */
export function fold(chunks: readonly UIChunk[]): AnyUIMessage {
  const result = new MessageFold();
  for (const chunk of chunks) result.add(chunk);
  return result.message;
}

/** Returns what a client of version 7 has where version 6 keeps the input of a failed call in another field. */
export function as7(message: AnyUIMessage): AnyUIMessage {
  const parts = message.parts.map((part) => {
    if (part.state !== 'output-error' || part.rawInput === undefined) return part;
    const { rawInput, ...rest } = part;
    return { ...rest, input: rawInput };
  });
  return { ...message, parts };
}

function withoutIds(part: UIPart): UIPart {
  if (part.approval !== undefined) return { ...part, approval: { ...part.approval, id: undefined } };
  return part.type === 'reasoning' ? { ...part, id: undefined } : part;
}

/** Adds a chunk that changes nothing, because clients report a message only when it changes visibly. */
function ended(chunks: readonly UIChunk[], shown?: AnyUIMessage): UIChunk[] {
  const starts = chunks.filter(({ type, messageId }) => type === 'start' && messageId !== undefined);
  return structuredClone([...chunks, { type: 'start', messageId: starts.at(-1)?.messageId ?? shown?.id ?? '' }]);
}

async function read(
  chunks: readonly UIChunk[],
  shown: AnyUIMessage | undefined,
  schema: typeof schema6 | typeof schema7,
  messages: (stream: Stream<unknown>, options: Options) => AsyncIterable<unknown>,
): Promise<AnyUIMessage> {
  for (const chunk of chunks) await assertValid(schema, chunk);
  const failures: unknown[] = [];
  const onError = (error: unknown) => failures.push(error);
  const stream = ReadableStream.from(ended(chunks, shown));
  let last: unknown;
  for await (const message of messages(stream, { message: shown as never, onError })) last = message;
  const errors = chunks.filter(({ type }) => type === 'error').map(({ errorText }) => errorText);
  expect(failures.map((error) => (error as Error).message)).toEqual(errors);
  return last as AnyUIMessage;
}

async function assertValid(schema: typeof schema6 | typeof schema7, chunk: UIChunk): Promise<void> {
  const result = await schema().validate?.(chunk);
  if (result?.success !== true) throw new Error(`The client does not accept ${JSON.stringify(chunk)}.`);
}
