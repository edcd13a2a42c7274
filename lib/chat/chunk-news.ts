import { isDeepStrictEqual } from 'node:util';
import { type ChunkFields, type PartFields } from './chunk-fields.js';

/** The order of the states of a tool call; the final ones follow. */
const STATES = ['input-streaming', 'input-available', 'approval-requested', 'approval-responded', 'preliminary'];

/**
 * Returns what a client does not have of a chunk: nothing, the chunk, or the rest of its delta.
 * @param part the part of this attempt, after the chunk
 * @param known the same part as the client has it
 * @returns `undefined` if the client has something else, which no further chunk can turn into this part
 */
export function newsOf(chunk: ChunkFields, part: PartFields, known: PartFields): ChunkFields[] | undefined {
  switch (chunk.type) {
    case 'text-start':
    case 'reasoning-start':
      return [];
    case 'text-delta':
    case 'reasoning-delta':
      return newsOfDelta(chunk, part, known);
    case 'text-end':
    case 'reasoning-end':
      return newsOfEnd(chunk, part, known);
    default:
      if (part.toolCallId !== undefined) return newsOfCall(chunk, part, known);
      return isDeepStrictEqual(part, known) ? [] : undefined;
  }
}

function newsOfDelta(chunk: ChunkFields, part: PartFields, known: PartFields): ChunkFields[] | undefined {
  const delta = continuation(known.text, part.text, chunk.delta);
  const isOpen = known.state === 'streaming';
  if (delta === undefined || (delta !== '' && !isOpen)) return undefined;
  const { providerMetadata } = chunk;
  const isLast = isOpen && part.text.length === known.text.length;
  const isChanged = providerMetadata !== undefined && !isDeepStrictEqual(providerMetadata, known.providerMetadata);
  return delta !== '' || (isLast && isChanged) ? [{ ...chunk, delta }] : [];
}

function newsOfEnd(chunk: ChunkFields, part: PartFields, known: PartFields): ChunkFields[] | undefined {
  if (known.state === 'done') return isDeepStrictEqual(withoutId(part), withoutId(known)) ? [] : undefined;
  if (part.text !== known.text) return undefined;
  const { providerMetadata } = part;
  if (isDeepStrictEqual(providerMetadata, known.providerMetadata)) return [chunk];
  // The client has the metadata of an earlier attempt. A chunk can replace it, but not remove it.
  return providerMetadata === undefined ? undefined : [{ ...chunk, providerMetadata }];
}

function newsOfCall(chunk: ChunkFields, part: PartFields, known: PartFields): ChunkFields[] | undefined {
  if (part.type !== known.type || part.toolName !== known.toolName) return undefined;
  if (chunk.type === 'tool-input-delta') {
    if (known.state !== 'input-streaming') return [];
    const delta = continuation(known.rawInput ?? '', part.rawInput ?? '', chunk.inputTextDelta);
    return delta === undefined ? undefined : delta === '' ? [] : [{ ...chunk, inputTextDelta: delta }];
  }
  const isInput = chunk.type === 'tool-input-available' || chunk.type === 'tool-input-error';
  if (isInput && known.state !== 'input-streaming' && !isDeepStrictEqual(part.input, known.input)) return undefined;
  const order = rankOf(part) - rankOf(known);
  if (order < 0 || (order === 0 && isDeepStrictEqual(outcomeOf(part), outcomeOf(known)))) return [];
  // The SDK gives an approval another id in each attempt.
  const isAnswer = chunk.type === 'tool-approval-response' && known.approval !== undefined;
  return [isAnswer ? { ...chunk, approvalId: known.approval.id } : chunk];
}

/** Returns the rest of a delta that follows a shown text, or `undefined` if the shown text continues differently. */
function continuation(shown: string, own: string, delta: string): string | undefined {
  const expected = shown.slice(own.length - delta.length, own.length);
  return delta.startsWith(expected) ? delta.slice(expected.length) : undefined;
}

function rankOf({ state, preliminary }: PartFields): number {
  const rank = STATES.indexOf(preliminary === true ? 'preliminary' : state);
  return rank === -1 ? STATES.length : rank;
}

function outcomeOf({ state, output, errorText }: PartFields): unknown {
  return { state, output, errorText };
}

function withoutId({ id: _, ...part }: PartFields): unknown {
  return part;
}
