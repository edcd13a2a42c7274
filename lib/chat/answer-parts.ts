import { types } from 'node:util';
import { defined } from './chunk-fields.js';
import { isResultPart } from './result-part.js';
import { type ModelPart } from './stored-model-message.js';
import { type UIPart } from './ui-message.js';

/** The UI part of a tool call. It changes when an approval or the result follows. */
type CallPart = Record<string, unknown> & { readonly type: string; approval?: { readonly id: unknown } };

/** The changes of a call's UI part by the parts that follow the call. */
const CHANGES: Readonly<Record<string, (part: ModelPart, call: CallPart) => object>> = {
  'tool-approval-request': (part) => ({ state: 'approval-requested', approval: toApproval(part) }),
  'tool-approval-response': ({ approved, reason }, { state, approval }) => ({
    // A result of the provider can be in the message of the call, and has changed the part already.
    state: state === 'approval-requested' ? 'approval-responded' : state,
    approval: { ...defined({ approved, reason }), ...approval },
  }),
  'tool-result': toOutcome,
};

/**
 * Converts parts of model messages to UI parts. The approval and the result of a tool call become fields of its part.
 * This part is dynamic: its output is what the model received, not what a page expects of the named tool.
 */
export class AnswerParts {
  /** The latest call of each id. */
  private readonly calls = new Map<unknown, CallPart>();

  /** Returns the UI parts of the next message. Approvals and results change the parts of earlier messages. */
  of(content: string | readonly ModelPart[]): UIPart[] {
    if (typeof content === 'string') return [{ type: 'text', text: content }];
    return toPlainJson(content).flatMap((part) => {
      if (Object.hasOwn(CHANGES, part.type)) {
        const call = this.callOf(part);
        if (call) Object.assign(call, CHANGES[part.type](part, call));
        return [];
      }
      if (part.type !== 'tool-call') return [toUIPart(part)];
      const call = toCallPart(part);
      this.calls.set(part.toolCallId, call);
      return [call];
    });
  }

  /** Returns the parts of a stored UI message. Results of tools that the client ran change the parts of their calls. */
  ofUI(parts: readonly UIPart[]): UIPart[] {
    return parts.flatMap((part): UIPart[] => {
      if (isResultPart(part)) {
        const { toolCallId, output = null, errorText } = part;
        const result =
          errorText === undefined ? { state: 'output-available', output } : { state: 'output-error', errorText };
        Object.assign(this.calls.get(toolCallId) ?? {}, result);
        return [];
      }
      if (part.state !== 'input-available' && part.state !== 'approval-requested') return [part];
      const call = { ...part } as CallPart;
      this.calls.set(part.toolCallId, call);
      return [call];
    });
  }

  private callOf({ toolCallId, approvalId }: ModelPart): CallPart | undefined {
    if (toolCallId !== undefined) return this.calls.get(toolCallId);
    return [...this.calls.values()].find(({ approval }) => approval?.id === approvalId);
  }
}

function toCallPart({ toolCallId, toolName, input, providerExecuted, providerOptions }: ModelPart): CallPart {
  const optional = defined({ providerExecuted, callProviderMetadata: providerOptions });
  return { type: 'dynamic-tool', toolName, toolCallId, state: 'input-available', input, ...optional };
}

function toApproval({ approvalId, isAutomatic, reason, signature, inputSchemaInput }: ModelPart): object {
  return { id: approvalId, ...defined({ isAutomatic, requestReason: reason, signature, inputSchemaInput }) };
}

/** Returns the fields of a call with a result. A call with a result was approved, unless the result says otherwise. */
function toOutcome({ toolCallId, output, providerOptions }: ModelPart, { approval }: CallPart): object {
  const { type, value, reason } = output as { type: string; value?: unknown; reason?: unknown };
  if (type === 'execution-denied') {
    const denial = { id: toolCallId, ...approval, approved: false, ...defined({ reason }) };
    return { state: 'output-denied', approval: denial };
  }
  const optional = defined({
    resultProviderMetadata: providerOptions,
    approval: approval && { ...approval, approved: true },
  });
  if (type === 'error-text') return { state: 'output-error', errorText: value, ...optional };
  if (type === 'error-json') return { state: 'output-error', errorText: JSON.stringify(value), ...optional };
  return { state: 'output-available', output: value, ...optional };
}

/** Returns the UI part of text, reasoning, a file, or content of a provider. */
function toUIPart({ providerOptions, data, image, ...part }: ModelPart): UIPart {
  const file = data ?? image;
  const metadata = defined({ providerMetadata: providerOptions });
  if (file === undefined) return { ...part, ...metadata };
  const mediaType = typeof part.mediaType === 'string' ? part.mediaType : 'image/*';
  const type = part.type === 'image' ? 'file' : part.type;
  return { ...part, type, mediaType, ...locationOf(file, mediaType), ...metadata };
}

/** Returns where a client finds a file: at its URL, in a data URL, or with the provider. */
function locationOf(file: unknown, mediaType: string): object {
  // A URL contains a colon; base64 does not.
  if (typeof file === 'string') return { url: file.includes(':') ? file : `data:${mediaType};base64,${file}` };
  const { type, data, url, text, reference = file } = file as Record<string, unknown>;
  if (type === 'url') return { url };
  if (type === 'data') return { url: `data:${mediaType};base64,${data as string}` };
  if (type === 'text') return { url: `data:${mediaType},${encodeURIComponent(text as string)}` };
  return { url: '', providerReference: reference };
}

/** Returns the parts as a client reads them: bytes as base64, URLs and dates as strings. */
function toPlainJson(parts: readonly ModelPart[]): ModelPart[] {
  const json = JSON.stringify(parts, (_, value: unknown) =>
    types.isUint8Array(value) ? Buffer.from(value).toString('base64') : value,
  );
  return JSON.parse(json) as ModelPart[];
}
