import fc from 'fast-check';
import { type ConversationMessage, type MessageDraft } from 'nestjs-agent-sessions';
import { deepFreeze } from '../../lib/common/json.js';
import { type AnyUIMessage, type UIPart } from '../../lib/chat/ui-message.js';

type Fields = Readonly<Record<string, fc.Arbitrary<unknown>>>;

export const text = fc.string({ maxLength: 12 });
export const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,7}$/);
/** JSON without the key that is rejected (FIX-64), and without a negative zero. */
export const json = fc
  .jsonValue({ maxDepth: 2 })
  .map((value) => JSON.stringify(value))
  .filter((value) => !value.includes('__proto__'))
  .map((value): unknown => JSON.parse(value));
export const metadata = fc.record({ maker: fc.dictionary(word, json, { maxKeys: 2 }) });
export const mediaType = fc.constantFrom('image/png', 'application/pdf', 'text/plain');
export const url = fc.oneof(
  fc.constantFrom('https://example.com/a.png', 'https://example.com/b?c=d#e'),
  fc.base64String({ maxLength: 16 }).map((data) => `data:image/png;base64,${data}`),
);

/** Objects with these fields, and some of the others. */
export function object(required: Fields, others: Fields = {}): fc.Arbitrary<Record<string, unknown>> {
  return fc.record({ ...required, ...others }, { requiredKeys: Object.keys(required) });
}

function part(type: string, required: Fields = {}, others: Fields = {}): fc.Arbitrary<UIPart> {
  return object({ type: fc.constant(type), ...required }, others) as fc.Arbitrary<UIPart>;
}

const block = { state: fc.constantFrom('streaming', 'done'), providerMetadata: metadata };
const textPart = part('text', { text }, block);
const filePart = part('file', { mediaType, url }, { filename: text, providerMetadata: metadata });
const dataPart = word.chain((name) => part(`data-${name}`, { data: json }, { id: text }));

const steering = fc.oneof(part('text', { text }, { providerMetadata: metadata }), filePart);

/** Parts of ai 7 that ai 6 ignores. */
const newParts = fc.oneof(
  part('custom', { kind: fc.constant('maker.kind') }, { providerMetadata: metadata }),
  part('reasoning-file', { mediaType, url }, { providerMetadata: metadata }),
  part('steering-message', { id: text, parts: fc.array(steering, { minLength: 1, maxLength: 2 }) }),
);

const tool = {
  title: text,
  toolMetadata: metadata,
  callProviderMetadata: metadata,
  providerExecuted: fc.boolean(),
};
const request = { requestReason: text, isAutomatic: fc.boolean(), signature: text, inputSchemaInput: json };
const approval = (required: Fields, others: Fields = {}): fc.Arbitrary<unknown> =>
  object({ id: text, ...required }, { ...request, ...others });
const answered = (approved: boolean): fc.Arbitrary<unknown> =>
  approval({ approved: fc.constant(approved) }, { reason: text });

function toolPart(state: string, required: Fields, others: Fields = {}): fc.Arbitrary<UIPart> {
  const fields = object({ state: fc.constant(state), toolCallId: text, ...required }, { ...tool, ...others });
  const kind = fc.oneof(
    word.map((name) => ({ type: `tool-${name}` })),
    word.map((toolName) => ({ type: 'dynamic-tool', toolName })),
  );
  return fc.tuple(kind, fields).map(([type, rest]) => ({ ...type, ...rest }));
}

/** Tool calls with a result. */
export const completeCall = fc.oneof(
  toolPart(
    'output-available',
    { input: json, output: json },
    { resultProviderMetadata: metadata, approval: answered(true) },
  ),
  toolPart(
    'output-error',
    { input: json, errorText: text },
    { resultProviderMetadata: metadata, approval: answered(true) },
  ),
  toolPart('output-denied', { input: json, approval: answered(false) }),
);

/** Tool calls without a result. */
export const incompleteCall = fc.oneof(
  toolPart('input-streaming', {}, { input: json, rawInput: text, inputEncoding: fc.constantFrom('json', 'text') }),
  toolPart('input-available', { input: json }),
  toolPart('approval-requested', { input: json, approval: approval({}) }),
  toolPart('approval-responded', { input: json, approval: fc.boolean().chain(answered) }),
  toolPart('output-available', { input: json, output: json, preliminary: fc.constant(true) }),
);

/** UI messages with every kind of part. Their ids, and those of their calls and approvals, are unique. */
export function uiMessages(call: fc.Arbitrary<UIPart>): fc.Arbitrary<AnyUIMessage[]> {
  const assistantPart = fc.oneof(
    { arbitrary: call, weight: 3 },
    { arbitrary: part('step-start'), weight: 2 },
    textPart,
    part('reasoning', { text }, { ...block, id: text }),
    filePart,
    part('source-url', { sourceId: text, url }, { title: text, providerMetadata: metadata }),
    part('source-document', { sourceId: text, mediaType, title: text }, { filename: text }),
    dataPart,
    newParts,
  );
  const message = fc.oneof(
    uiMessage('user', fc.array(fc.oneof(textPart, filePart, dataPart), { minLength: 1, maxLength: 3 })),
    uiMessage('user', fc.tuple(part('text', { text }))),
    uiMessage('system', fc.array(textPart, { minLength: 1, maxLength: 2 })),
    { arbitrary: uiMessage('assistant', fc.array(assistantPart, { minLength: 1, maxLength: 8 })), weight: 3 },
  );
  return fc.array(message, { minLength: 1, maxLength: 6 }).map((messages) => messages.map(withUniqueIds));
}

function uiMessage(role: AnyUIMessage['role'], parts: fc.Arbitrary<UIPart[]>): fc.Arbitrary<AnyUIMessage> {
  return object(
    { id: text, role: fc.constant(role), parts },
    { metadata: json },
  ) as unknown as fc.Arbitrary<AnyUIMessage>;
}

function withUniqueIds(message: AnyUIMessage, index: number): AnyUIMessage {
  const parts = message.parts.map((each, at) => {
    const id = `${index}.${at}`;
    return {
      ...each,
      ...(each.toolCallId === undefined ? {} : { toolCallId: id }),
      ...(each.approval === undefined ? {} : { approval: { ...(each.approval as object), id } }),
    };
  });
  return { ...message, id: `${message.id}${index}`, parts };
}

/** Returns drafts as a store returns them: JSON, frozen, with the fields of a log. */
export function logOf(drafts: readonly MessageDraft[], turnId?: string): ConversationMessage[] {
  const log = drafts.map((draft, index) => ({
    id: `stored-${index}`,
    ...(JSON.parse(JSON.stringify(draft)) as MessageDraft),
    position: index + 1,
    createdAt: '2026-11-25T10:00:00.000Z',
    ...(turnId === undefined ? {} : { turnId, orchestrator: 'desk' }),
  }));
  return deepFreeze(log);
}
