import fc from 'fast-check';
import { type ModelMessageLike, type ModelPart } from '../../lib/chat/stored-model-message.js';
import { json, mediaType, metadata, object, text, word } from './arbitrary-messages.js';

type Fields = Readonly<Record<string, fc.Arbitrary<unknown>>>;

/** The versions of the package `ai`, whose messages differ. */
export type Version = 6 | 7;

/** Messages that belong together: a call, its results, and what follows from them. */
export type Exchange = readonly ModelMessageLike[];

/** A call of a tool, and what a model receives of its result. */
interface Call {
  readonly call: ModelPart;
  readonly result: ModelPart;
  readonly approval?: { readonly reason: string; readonly signature: string };
}

const options = { providerOptions: metadata };
const said = fc.string({ minLength: 1, maxLength: 12 });
const bytes = fc.uint8Array({ maxLength: 8 });
const base64 = fc.base64String({ minLength: 4, maxLength: 16 });
const link = fc.constantFrom('https://example.com/a.png', 'data:image/png;base64,AAAA');
const location = link.map((href) => new URL(href));
const reference = fc.constant({ maker: 'file-1' });
const tagged = fc.oneof(
  object({ type: fc.constant('data'), data: fc.oneof(bytes, base64) }),
  object({ type: fc.constant('url'), url: location }),
  object({ type: fc.constant('reference'), reference }),
  object({ type: fc.constant('text'), text }),
);

function part(type: string, required: Fields = {}, others: Fields = options): fc.Arbitrary<ModelPart> {
  return object({ type: fc.constant(type), ...required }, others) as unknown as fc.Arbitrary<ModelPart>;
}

const bare = fc.oneof(bytes, base64, link, location);
const dataOf = (version: Version): fc.Arbitrary<unknown> => (version === 6 ? bare : fc.oneof(bare, tagged, reference));
const textPart = part('text', { text: said });
const filePart = (version: Version): fc.Arbitrary<ModelPart> =>
  part('file', { data: dataOf(version), mediaType }, { filename: text, ...options });

function spoken(version: Version): fc.Arbitrary<ModelPart> {
  const common = [textPart, part('reasoning', { text }), filePart(version)];
  const added = [
    part('custom', { kind: fc.constant('maker.kind') }),
    part('reasoning-file', { data: bare, mediaType }),
  ];
  return fc.oneof(...common, ...(version === 6 ? [] : added));
}

const output = (version: Version): fc.Arbitrary<unknown> => {
  const file =
    version === 6 ? part('image-data', { data: base64, mediaType }) : part('file', { data: tagged, mediaType });
  return fc.oneof(
    part('text', { value: text }),
    part('json', { value: json }),
    part('error-text', { value: text }),
    part('error-json', { value: json }),
    part('execution-denied', {}, { reason: text }),
    part('content', { value: fc.array(fc.oneof(textPart, file), { maxLength: 3 }) }, {}),
  );
};

/** Arguments of a tool, which may be parsed to dates, or invalid text. */
const input = fc.oneof(
  {
    arbitrary: fc.dictionary(fc.oneof(word, fc.constantFrom('$type', 'constructor')), json, { maxKeys: 3 }),
    weight: 3,
  },
  object({ day: fc.date({ noInvalidDate: true }) }),
  fc.tuple(fc.date({ noInvalidDate: true })),
  json,
);

/** The calls of one message. Other messages have calls with the same ids, as those of some models do. */
const calls = (version: Version, executed: fc.Arbitrary<boolean | undefined>): fc.Arbitrary<Call[]> => {
  const call = fc
    .record({
      toolName: word,
      call: object({ input, providerExecuted: executed }, options),
      result: object({ output: output(version) }, options),
      approval: fc.option(fc.record({ reason: text, signature: text }), { nil: undefined }),
    })
    .map(({ toolName, call, result, approval }) => ({
      call: { type: 'tool-call', toolCallId: '', toolName, ...call },
      result: { type: 'tool-result', toolCallId: '', toolName, ...result },
      approval,
    }));
  return fc.array(call, { minLength: 1, maxLength: 3 }).map((all) => all.map(withCallId));
};

function withCallId({ call, result, approval }: Call, index: number): Call {
  const toolCallId = `call-${index}`;
  return { call: { ...call, toolCallId }, result: { ...result, toolCallId }, approval };
}

function request({ call, approval }: Call): ModelPart[] {
  const { toolCallId } = call;
  if (!approval) return [];
  const { signature } = approval;
  return [{ type: 'tool-approval-request', approvalId: `ask-${String(toolCallId)}`, toolCallId, signature }];
}

function response({ call, approval }: Call): ModelPart[] {
  const { toolCallId, providerExecuted } = call;
  if (!approval) return [];
  const { reason } = approval;
  const approvalId = `ask-${String(toolCallId)}`;
  return [{ type: 'tool-approval-response', approvalId, approved: true, reason, providerExecuted }];
}

function message(role: ModelMessageLike['role'], content: fc.Arbitrary<unknown>): fc.Arbitrary<ModelMessageLike> {
  return object({ role: fc.constant(role), content }, options) as unknown as fc.Arbitrary<ModelMessageLike>;
}

const assistant = (content: readonly ModelPart[]): ModelMessageLike => ({ role: 'assistant', content });
const tool = (content: readonly ModelPart[]): ModelMessageLike[] =>
  content.length === 0 ? [] : [{ role: 'tool', content }];

/** Calls that the application runs: the results follow in one message or several, in any order. */
const ownCalls = (version: Version): fc.Arbitrary<Exchange> =>
  fc
    .tuple(
      fc.array(spoken(version), { maxLength: 2 }),
      calls(version, fc.constantFrom(undefined, false)),
      fc.boolean(),
      fc.boolean(),
      fc.boolean(),
    )
    .map(([before, all, isReversed, isSplit, isApart]) => {
      const results = all.map(({ result }) => result);
      if (isReversed) results.reverse();
      const responses = all.flatMap(response);
      const messages = isApart ? [...tool(responses), ...tool(results)] : tool([...responses, ...results]);
      const split = isSplit
        ? messages.flatMap(({ content }) => [...content].flatMap((each) => tool([each as ModelPart])))
        : messages;
      return [assistant([...before, ...all.flatMap((each) => [each.call, ...request(each)])]), ...split];
    });

/** Calls that the provider runs: the results are in the same message, or in the next one of the assistant. */
const providerCalls = (version: Version): fc.Arbitrary<Exchange> =>
  fc.tuple(calls(version, fc.constant(true)), textPart, fc.boolean()).map(([all, last, isDeferred]) => {
    const requested = all.flatMap((each) => [each.call, ...request(each)]);
    const results = all.map(({ result }) => result);
    const answers = tool(all.flatMap(response));
    return isDeferred
      ? [assistant(requested), ...answers, assistant([...results, last])]
      : [assistant([...requested, ...results, last]), ...answers];
  });

/** Conversations that providers accept, as exchanges. */
export function exchanges(version: Version): fc.Arbitrary<Exchange[]> {
  const image = version === 6 ? bare : fc.oneof(bare, reference);
  const userPart = fc.oneof(textPart, filePart(version), part('image', { image }, { mediaType, ...options }));
  const single = fc.oneof(
    message('system', said),
    message('user', fc.oneof(said, fc.array(userPart, { minLength: 1, maxLength: 3 }))),
    message('assistant', said),
    message(
      'assistant',
      fc.tuple(fc.array(spoken(version), { maxLength: 3 }), textPart).map(([parts, last]) => [...parts, last]),
    ),
  );
  const exchange = fc.oneof(
    single.map((each) => [each]),
    ownCalls(version),
    providerCalls(version),
  );
  return fc.array(exchange, { minLength: 1, maxLength: 5 });
}
