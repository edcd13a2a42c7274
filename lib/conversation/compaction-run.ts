import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { isPlainObject } from '../common/json.js';
import { mintId } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { addUsage, type TokenCounts, toTokenCounts } from '../common/token-counts.js';
import { type StateStore } from '../ledger/state.store.js';
import { type CompactionEvent } from './compaction-events.js';
import { during, limited } from './compaction-failure.js';
import { type CompactionInfo, type CompactionPolicy } from './compaction-policy.js';
import { countedFrom, uncountedTurnsOf, keptOf, mostKept } from './compaction-thresholds.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { type ConversationHead } from './conversation-head.js';
import { type ConversationHeads } from './conversation-heads.js';
import { type HeldHead } from './held-head.js';
import { type ConversationMessage, type MessageSpan } from '../ledger/message.js';
import { closeCalls } from './close-calls.js';
import { type MessageTokens } from './message-tokens.js';
import { withSpent } from './spent-usage.js';
import { readUncompacted, type AuthorCheckpoints, type Uncompacted } from './uncompacted.js';

export interface RunParts {
  readonly adapter: {
    readonly state: StateStore;
    readonly conversations: ConversationLog;
    readonly checkpoints: CheckpointStore;
  };
  readonly tokens: MessageTokens;
  /** The timeout of a call of `summarize` or `onCompact`, in milliseconds. */
  readonly timeoutMs: number;
  readonly emit: (event: CompactionEvent) => void;
}

/** The conversation to compact, and the policy. */
export interface CompactionTask {
  readonly sessionId: string;
  readonly orchestrator: string;
  readonly policy: CompactionPolicy;
  readonly request?: undefined;
}

/**
 * A compaction requested through the control plane. Only the caller receives its result, and a failure is not recorded.
 */
export interface RequestedTask extends Omit<CompactionTask, 'orchestrator' | 'request'> {
  /** The orchestrator of the summarizer; `null`: none. */
  readonly orchestrator: string | null;
  readonly request: Pick<CompactionInfo, 'summaryMaxTokens'>;
}

/** The result of a compaction command. */
export interface CompactionResult {
  /** The number of messages that the summary replaced; 0 if there was nothing to compact. */
  readonly messages: number;
  readonly summary: string | null;
  readonly replaces: MessageSpan | null;
  readonly usage: TokenCounts | null;
}

export const NOTHING: CompactionResult = { messages: 0, summary: null, replaces: null, usage: null };

/** One compaction of one session, in the process that holds its head. */
export class CompactionRun {
  private readonly checkpoints: AuthorCheckpoints = new Map();
  private readonly info: CompactionInfo;
  /** The usage of summaries that is not yet recorded in the head. */
  private spent: TokenCounts | null = null;

  constructor(
    private readonly parts: RunParts,
    private readonly task: CompactionTask | RequestedTask,
    private readonly heads: ConversationHeads,
    private readonly held: HeldHead,
    signal: AbortSignal,
  ) {
    const { sessionId, orchestrator, request } = task;
    this.info = { sessionId, orchestrator, signal, ...request };
  }

  /**
   * Writes one summary after another until only the messages to keep are left.
   * @param onBegin called once if there is something to summarize
   */
  async compact(onBegin: () => void): Promise<CompactionResult> {
    let result = NOTHING;
    for (let more = true; more;) {
      const startedAt = performance.now();
      const [base, part] = await during('load', () => this.load());
      if (part.replaced.length === 0) break;
      if (result === NOTHING) onBegin();
      const { text, usage } = await during('summarize', () => this.summarize(base, part.replaced));
      const summary = summaryMessage(text, base, part.replaced, this.held.now());
      await during('apply', () => this.apply(summary, text, usage, part));
      const replaces = summary.replaces!;
      const pass = { messages: part.replaced.length, summary: text, replaces, usage };
      this.reportApplied(pass, startedAt);
      result = joined(result, pass);
      more = part.more;
      // If this fails, the next holder archives it.
      await this.held.archive().catch(() => undefined);
    }
    return result;
  }

  /** Returns the head with the usage of failed summaries added. */
  readonly charged = (head: ConversationHead): ConversationHead => {
    const { orchestrator } = this.task;
    return this.spent && orchestrator !== null ? withSpent(head, orchestrator, this.spent) : head;
  };

  /** Loads the input of the next summary: the head to start from, and the messages after it. */
  private async load(): Promise<[ConversationHead, Uncompacted]> {
    const { held, parts, checkpoints } = this;
    const { sessionId, policy } = this.task;
    const { conversations, checkpoints: store } = parts.adapter;
    // Messages that the current summary covers may have been undone.
    const base = held.head.takenBack === null ? held.head : await this.heads.earlier(sessionId, held.head);
    const kept = (last: readonly ConversationMessage[]): number => keptOf(last, policy, base, parts.tokens);
    const most = mostKept(policy);
    const from = { log: held.head.log, after: base.through };
    const part = await readUncompacted(conversations, store, sessionId, from, most, kept, checkpoints);
    if (part.last !== null) held.confirm();
    return [base, part];
  }

  private async summarize(
    { summary }: ConversationHead,
    replaced: readonly ConversationMessage[],
  ): Promise<{ text: string; usage: TokenCounts | null }> {
    const { policy } = this.task;
    const messages = closeCalls(summary ? [summary, ...replaced] : replaced);
    const returned: unknown = await this.call('summarize', (info) => policy.summarize(messages, info));
    const { text, usage } = isPlainObject(returned) ? returned : { text: returned };
    const used = usage === undefined ? null : toTokenCounts(usage);
    // The tokens are spent, even if the summary is rejected.
    if (used) this.spent = this.spent ? addUsage(this.spent, used) : used;
    if (typeof text !== 'string' || text.trim() === '') {
      throw new InvalidInputError('summarize', 'must return a non-empty string, or { text, usage }.');
    }
    return { text, usage: used };
  }

  private async apply(
    summary: ConversationMessage,
    text: string,
    usage: TokenCounts | null,
    part: Uncompacted,
  ): Promise<void> {
    const { held, parts } = this;
    const { orchestrator, policy } = this.task;
    const { replaced, rest, more } = part;
    const { through } = summary.replaces!;
    const change: Partial<ConversationHead> = {
      through,
      summary,
      ...(policy.onCompact ? {} : { shown: summary, hiddenThrough: through }),
      failure: null,
      takenBack: null,
      // The next pass counts the rest.
      since: more ? through : countedFrom(policy, replaced.at(-1)!.position, rest, parts.tokens),
      ...(more
        ? {}
        : { turns: { ...held.head.turns, ...uncountedTurnsOf(policy, orchestrator, this.checkpoints, rest) } }),
    };
    const compaction = {
      number: held.head.number + 1,
      summary: text,
      replaces: summary.replaces!,
      ...(usage ? { usage } : {}),
    };
    if (policy.onCompact) await this.call('onCompact', (info) => policy.onCompact?.(compaction, info));
    await held.replace((head) => ({ ...this.charged(head), ...change }));
    this.spent = null;
  }

  private call<T>(what: string, work: (info: CompactionInfo) => Promise<T> | T): Promise<T> {
    return limited(what, this.parts.timeoutMs, this.info, work);
  }

  private reportApplied({ messages, replaces, usage }: CompactionResult, startedAt: number): void {
    if (this.task.request) return;
    const { sessionId, orchestrator } = this.task;
    this.parts.emit({
      type: 'compaction-applied',
      orchestrator,
      sessionId,
      number: this.held.head.number,
      replaces: replaces!,
      messages,
      ...(usage ? { usage } : {}),
      durationMs: Math.round(performance.now() - startedAt),
    });
  }
}

function summaryMessage(
  text: string,
  base: ConversationHead,
  replaced: readonly ConversationMessage[],
  now: number,
): ConversationMessage {
  const through = replaced.at(-1)!.position;
  const from = base.summary?.replaces?.from ?? replaced[0].position;
  const createdAt = new Date(now).toISOString();
  return { id: mintId(), position: through, role: 'system', content: text, createdAt, replaces: { from, through } };
}

function joined(before: CompactionResult, next: CompactionResult): CompactionResult {
  const usage = before.usage && next.usage ? addUsage(before.usage, next.usage) : (next.usage ?? before.usage);
  return { ...next, messages: before.messages + next.messages, usage };
}
