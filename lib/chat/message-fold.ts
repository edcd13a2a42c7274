import { blockKindOf, type BlockKind, type ChunkFields, defined, isData, type PartFields } from './chunk-fields.js';
import { MatchingParts } from './matching-parts.js';
import { mergeMetadata } from './merge-metadata.js';
import { parsePartialJson } from './partial-json.js';
import { type AnyUIMessage, type UIChunk, type UIPart } from './ui-message.js';

/**
 * A chunk that removes the parts of the current step, as version 7's `reset-step` does. It is never sent to a client.
 */
export const UI_RESET = 'ui-reset';

/**
 * Builds the message that a client has after some chunks. Chunks that refer to an unknown block or tool call are
 * ignored; clients reject them.
 */
export class MessageFold {
  private id = '';
  private metadata: unknown;
  private list: PartFields[] = [];
  /** The index of the first part of each step. */
  private steps = [0];
  private matching = new MatchingParts();
  /** The index of each open block, by its kind and id. */
  private readonly open = new Map<string, number>();

  /** The message. Later chunks do not change it. */
  get message(): AnyUIMessage {
    const metadata = this.metadata === undefined ? {} : { metadata: this.metadata };
    return { id: this.id, role: 'assistant', ...metadata, parts: this.list.map(withPartialInput) };
  }

  /** The parts, without the input of tool calls whose input is incomplete. A changed part is another object. */
  get parts(): readonly PartFields[] {
    return this.list;
  }

  /** Returns the parts of a step, from 1; 0 are the parts before the first step. */
  partsOfStep(step: number): readonly PartFields[] {
    const next = step + 1 < this.steps.length ? this.steps[step + 1] - 1 : this.list.length;
    return step < this.steps.length ? this.list.slice(this.steps[step], next) : [];
  }

  /** Returns the part that corresponds to a part of another version of this message; see MatchingParts. */
  counterpart(part: PartFields, other: MessageFold): PartFields | undefined {
    return this.matching.counterpart(part, other.matching);
  }

  /** Adds the next chunk. @returns the part that it added or changed, if any */
  add(given: UIChunk): PartFields | undefined {
    const chunk = given as ChunkFields;
    switch (chunk.type) {
      case 'start':
        if (chunk.messageId !== undefined && chunk.messageId !== this.id) this.begin(chunk.messageId);
        this.metadata = mergeMetadata(this.metadata, chunk.messageMetadata);
        return undefined;
      case 'finish':
      case 'message-metadata':
        this.metadata = mergeMetadata(this.metadata, chunk.messageMetadata);
        return undefined;
      case 'start-step':
        this.push({ type: 'step-start' });
        this.steps.push(this.list.length);
        return undefined;
      case UI_RESET:
      case 'reset-step':
        this.matching.remove(this.list.splice(this.stepStart));
        this.open.clear();
        return undefined;
      case 'file':
      case 'reasoning-file':
      case 'source-url':
      case 'source-document':
      case 'custom':
      case 'steering-message':
        return this.push(chunk);
      case 'tool-input-start':
        return this.setInput(chunk, 'input-streaming');
      case 'tool-input-delta':
        return this.replace(this.toolIndex(chunk.toolCallId), (part) => ({
          ...part,
          rawInput: (part.rawInput ?? '') + chunk.inputTextDelta,
        }));
      case 'tool-input-available':
        return this.setInput(chunk, 'input-available');
      case 'tool-input-error':
        return this.setInput(chunk, 'output-error');
      case 'tool-approval-request':
        return this.requestApproval(chunk);
      case 'tool-approval-response':
        return this.answerApproval(chunk);
      case 'tool-output-available':
        return this.setOutput(chunk, 'output-available');
      case 'tool-output-error':
        return this.setOutput(chunk, 'output-error');
      case 'tool-output-denied':
        return this.replace(this.toolIndex(chunk.toolCallId), (part) => ({ ...part, state: 'output-denied' }));
      default: {
        const kind = blockKindOf(chunk.type);
        if (kind) return this.addToBlock(kind, chunk);
        return isData(chunk) && chunk.transient !== true ? this.setData(chunk) : undefined;
      }
    }
  }

  private begin(id: string): void {
    this.id = id;
    this.metadata = undefined;
    this.list = [];
    this.steps = [0];
    this.matching = new MatchingParts();
    this.open.clear();
  }

  private addToBlock(
    kind: BlockKind,
    { type, id, delta, providerMetadata, citations }: ChunkFields,
  ): PartFields | undefined {
    const key = `${kind} ${id}`;
    if (type === `${kind}-start`) {
      this.open.set(key, this.list.length);
      // Clients keep the id of reasoning only.
      const start = { type: kind, id: kind === 'reasoning' ? id : undefined, text: '', state: 'streaming' };
      return this.push(defined({ ...start, providerMetadata }));
    }
    const index = this.open.get(key);
    if (type === `${kind}-delta`) {
      return this.replace(index, (part) => ({ ...part, text: part.text + delta, ...defined({ providerMetadata }) }));
    }
    this.open.delete(key);
    return this.replace(index, (part) => ({ ...part, state: 'done', ...defined({ citations, providerMetadata }) }));
  }

  private setData(chunk: ChunkFields): PartFields | undefined {
    const known = this.matching.data(chunk);
    if (known === undefined) return this.push(chunk);
    return this.replace(this.list.indexOf(known), (part) => ({ ...part, data: chunk.data }));
  }

  /** Sets the input of a call of the current step, or adds the call. */
  private setInput(chunk: ChunkFields, state: string): PartFields | undefined {
    const { toolCallId, toolName, dynamic } = chunk;
    const index = this.toolIndex(toolCallId);
    const isKnown = index >= this.stepStart;
    const isDynamic = isKnown ? this.list[index].type === 'dynamic-tool' : dynamic === true;
    const name = isDynamic ? { type: 'dynamic-tool', toolName } : { type: `tool-${toolName}` };
    const call = inState(state, { ...(isKnown ? this.list[index] : {}), ...name, toolCallId }, chunk);
    return isKnown ? this.replace(index, () => call) : this.push(call);
  }

  private setOutput(chunk: ChunkFields, state: string): PartFields | undefined {
    return this.replace(this.toolIndex(chunk.toolCallId), (part) => inState(state, part, chunk));
  }

  private requestApproval(chunk: ChunkFields): PartFields | undefined {
    const { approvalId, approvalDescriptor, inputSchemaInput, reason, isAutomatic, signature } = chunk;
    const approval = defined({
      id: approvalId,
      descriptor: approvalDescriptor ?? undefined,
      inputSchemaInput,
      requestReason: reason,
      isAutomatic: isAutomatic === true ? true : undefined,
      signature,
    });
    const state = 'approval-requested';
    return this.replace(this.toolIndex(chunk.toolCallId), (part) => ({ ...part, state, approval }));
  }

  private answerApproval(chunk: ChunkFields): PartFields | undefined {
    const { approvalId, approved, reason, providerExecuted, providerMetadata } = chunk;
    const index = this.list.findIndex(({ approval }) => approval?.id === approvalId);
    return this.replace(index, (part) => ({
      ...part,
      state: 'approval-responded',
      approval: { ...part.approval, ...defined({ approved, reason }) },
      ...defined({ providerExecuted, callProviderMetadata: providerMetadata }),
    }));
  }

  /** The index after the start of the current step. */
  private get stepStart(): number {
    return this.steps[this.steps.length - 1];
  }

  /** The latest call with an id: providers may use an id again in another step. */
  private toolIndex(toolCallId: string): number {
    return this.list.findLastIndex((part) => part.toolCallId === toolCallId);
  }

  private push(given: UIPart): PartFields {
    // A copy, because a chunk can come twice.
    const part = { ...given } as PartFields;
    this.list.push(part);
    this.matching.add(part, this.steps.length - 1);
    return part;
  }

  private replace(index: number | undefined, change: (part: PartFields) => UIPart): PartFields | undefined {
    if (index === undefined || index < 0) return undefined;
    const [part, by] = [this.list[index], change(this.list[index]) as PartFields];
    this.list[index] = by;
    this.matching.replace(part, by);
    return by;
  }
}

/**
 * Returns a tool call in another state. Fields that the chunk does not have stay, unless another state defines them.
 */
function inState(state: string, part: UIPart, chunk: ChunkFields): UIPart {
  const { inputEncoding, output, errorText, preliminary, title, toolMetadata, providerExecuted, providerMetadata } =
    chunk;
  const isResult = state.startsWith('output-');
  const kept = isResult
    ? { toolMetadata, providerExecuted, resultProviderMetadata: providerMetadata }
    : { title, toolMetadata, providerExecuted, callProviderMetadata: providerMetadata };
  const input = 'input' in chunk ? chunk.input : part.input;
  const content = { input, inputEncoding, rawInput: undefined, output, errorText, preliminary };
  return defined({ ...part, state, ...defined(kept), ...content });
}

function withPartialInput(part: PartFields): UIPart {
  const { state, rawInput, inputEncoding } = part;
  if (state !== 'input-streaming' || rawInput === undefined) return part;
  return { ...part, ...defined({ input: inputEncoding === 'text' ? rawInput : parsePartialJson(rawInput) }) };
}
