import { encode } from '../chat/stored-value.js';
import { jsonDigest } from '../common/digests.js';
import { type ModelCallOptions, type PromptMessage } from './language-model.js';

/** The digests of the parts of a call that decide its answer, by name. They are stored with the answer. */
export type PromptDigests = Readonly<Record<string, string>>;

/**
 * The question of a model call. Two calls with equal digests ask for the same answer. These differences do not count,
 * because they are no mistake of the handler:
 *
 * - The messages before the last one of the user, and the system prompt: while a turn waits, a compaction can replace
 *   earlier messages, and a deploy can change the prompt.
 * - The order of parallel results: the SDK lists those of approved calls in the order in which the calls end.
 * - Sampling settings, provider options and headers, and the order and the descriptions of tools.
 */
export class ModelPrompt {
  private computed: PromptDigests | undefined;

  constructor(
    private readonly method: 'doGenerate' | 'doStream',
    private readonly options: ModelCallOptions,
  ) {}

  /** Computed when it is first read, because a live answer must not wait for it. */
  get digests(): PromptDigests {
    const { prompt, tools = [], toolChoice, responseFormat } = this.options;
    return (this.computed ??= {
      method: this.method,
      messages: digest(messagesOf(prompt)),
      tools: digest(Object.fromEntries(tools.map(identityOf))),
      toolChoice: digest(toolChoice),
      responseFormat: digest(responseFormat),
    });
  }

  /** Returns the names of the parts that differ from another call. */
  differences(other: PromptDigests): string[] {
    return Object.entries(this.digests).flatMap(([name, value]) => (other[name] === value ? [] : [name]));
  }
}

/** Returns the messages from the last one of the user on, with parallel results in the order of their ids. */
function messagesOf(prompt: readonly PromptMessage[]): readonly PromptMessage[] {
  const said = prompt.findLastIndex(({ role }) => role === 'user');
  return prompt.slice(Math.max(0, said)).map((message) => {
    const { role, content } = message;
    return role === 'tool' && Array.isArray(content) ? { role, content: content.toSorted(byCallId) } : message;
  });
}

type Result = Exclude<PromptMessage['content'], string>[number];

function byCallId({ toolCallId: one = '' }: Result, { toolCallId: other = '' }: Result): number {
  return one < other ? -1 : Number(one > other);
}

/** Returns the name of a tool, and the fields that decide how the model can call it. */
function identityOf(tool: object): [string, object] {
  const { name, id, inputSchema, args } = tool as Record<string, unknown>;
  return [String(name), { id, inputSchema, args }];
}

/** 128 bits are enough, because prompts differ by accident only. */
function digest(value: unknown): string {
  return jsonDigest(encode(value) ?? null, 'The prompt').slice(0, 32);
}
