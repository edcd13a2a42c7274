import { Logger } from '@nestjs/common';
import { type CheckpointStore } from '../checkpoint/checkpoint.store.js';
import { isPlainObject } from '../common/json.js';
import { mintId } from '../common/ids.js';
import { hashed } from '../common/log-id.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { addUsage, type TokenUsage, toTokenUsage } from '../orchestration/token-usage.js';
import { type StateStore } from '../state/state.store.js';
import { toErrorRecord } from '../turn/turn-error-record.js';
import { backoffMs } from '../turn/turn-retry.js';
import { type RetrySettings } from '../turn/turn.settings.js';
import { ShuttingDownError } from '../turn/turn.errors.js';
import { CompactionBusyError, CompactionFailedError, type CompactionPhase } from './compaction.errors.js';
import { type CompactionEvent } from './compaction-events.js';
import { type CompactionInfo, type CompactionPolicy } from './compaction-policy.js';
import { type ConversationLog } from './conversation.store.js';
import { type ConversationHead, FIRST_HEAD, isDue, lastPosition, type SeenConversation } from './conversation-head.js';
import { ConversationHeads, type StoredHead } from './conversation-heads.js';
import { HeadLostError, HeldHead, isLeased } from './held-head.js';
import { type Message, type MessageSpan } from './message.js';
import { type MessageTokens } from './message-tokens.js';
import { readUncompacted, type SpeakersCheckpoints, type Uncompacted } from './uncompacted.js';

/** Sessions that this process compacts at once; what is one too many is due again after its next turn. */
const MAX_AT_ONCE = 32;
/** After a failure: ten seconds, twice as long after each further one, at most an hour. */
const BACKOFF: RetrySettings['backoff'] = { type: 'exponential', delayMs: 10_000, maxDelayMs: 3_600_000 };

export interface CompactorParts {
  readonly adapter: {
    readonly state: StateStore;
    readonly conversations: ConversationLog;
    readonly checkpoints: CheckpointStore;
  };
  readonly tokens: MessageTokens;
  /** Milliseconds for which a session is held without renewing. */
  readonly leaseMs: number;
  readonly emit: (event: CompactionEvent) => void;
  /** Adds what a summary took to what the session has used. */
  readonly addUsage: (orchestrator: string, sessionId: string, usage: TokenUsage) => Promise<void>;
  readonly backoff?: RetrySettings['backoff'];
}

/** Whose conversation is compacted, and by whose rules. */
export interface CompactionTask {
  readonly sessionId: string;
  readonly orchestrator: string;
  readonly policy: CompactionPolicy;
}

/** What a command made of a conversation. */
export interface CompactionResult {
  /** How many messages went behind the summary; 0 when there was nothing to compact. */
  readonly messages: number;
  readonly summary: string | null;
  readonly replaces: MessageSpan | null;
  readonly usage: TokenUsage | null;
}

/** One compaction of one session, while it is under way. */
interface Run extends CompactionTask {
  readonly controller: AbortController;
  readonly checkpoints: SpeakersCheckpoints;
}

/** What led to a compaction that nobody asked for. */
interface Automatic {
  readonly stillDue: (stored: StoredHead) => boolean;
  readonly seen: SeenConversation;
}

const NOTHING: CompactionResult = { messages: 0, summary: null, replaces: null, usage: null };

/**
 * Puts summaries in the place of old messages (BOT-41 to BOT-45): beside the turns, one process at a time for a session, while
 * turns go on. The log stays as it is; what changes is the head through which it is read.
 */
export class ConversationCompactor {
  private readonly logger = new Logger(ConversationCompactor.name);
  private readonly heads: ConversationHeads;
  private readonly holder = mintId();
  private readonly running = new Map<
    string,
    { readonly controller: AbortController; readonly done: Promise<unknown> }
  >();
  private stopping = false;

  constructor(private readonly parts: CompactorParts) {
    this.heads = new ConversationHeads(parts.adapter.state);
  }

  /**
   * Compacts the session if it is due, in the background. Called after each settled turn; asks the store for nothing as long as
   * it is not.
   * @param known the head that the turn was claimed with
   * @param settledAt by the store's clock
   */
  consider(task: CompactionTask, known: ConversationHead | null, seen: SeenConversation, settledAt: string): void {
    const head = known ?? FIRST_HEAD;
    if (this.stopping || this.running.has(task.sessionId) || this.running.size >= MAX_AT_ONCE) return;
    if (isResting(head, Date.parse(settledAt))) return;
    if (!this.isDue(task, head, seen)) return;
    const stillDue = (stored: StoredHead): boolean =>
      stored.head.number === head.number && !isResting(stored.head, stored.now());
    // What came of it was told by events.
    this.start(task, { stillDue, seen }).catch(() => undefined);
  }

  /**
   * Compacts the session now, whatever its size and whatever failed before (BOT-45).
   * @throws CompactionBusyError, CompactionFailedError, ShuttingDownError, StoreUnavailableError
   */
  async compact(task: CompactionTask): Promise<CompactionResult> {
    if (this.stopping) throw new ShuttingDownError(task.sessionId);
    if (this.running.has(task.sessionId)) throw new CompactionBusyError(task.sessionId);
    return this.start(task);
  }

  /**
   * Back to the summary before, or to the whole log: the latest compaction is taken back. Thresholds count on from where they
   * are, so that it is not done again at once.
   * @returns the position up to which messages are behind a summary now; `null` when there was no compaction
   * @throws CompactionBusyError, StoreUnavailableError
   */
  async restore(sessionId: string): Promise<{ readonly through: number } | null> {
    const stored = await this.heads.read(sessionId);
    if (isLeased(stored)) throw new CompactionBusyError(sessionId);
    const { head } = stored;
    if (head.previous === null) return null;
    const earlier = await this.earlierHead(sessionId, head);
    const { through, summary, applied, usage, previous } = earlier;
    await this.heads.keep(sessionId, head);
    const next = { ...head, number: head.number + 1, previous, through, summary, applied, usage, failure: null };
    if (!(await this.heads.write(sessionId, stored, { ...next, lease: null, takenBack: null }))) {
      throw new CompactionBusyError(sessionId);
    }
    return { through };
  }

  /** What is under way is stopped, and waited for; another process goes on after the next turn. */
  async stop(): Promise<void> {
    this.stopping = true;
    for (const [sessionId, { controller }] of this.running) controller.abort(new ShuttingDownError(sessionId));
    await this.idle();
  }

  /** Resolves once nothing is under way. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.running.values()].map(({ done }) => done));
  }

  /** A counter of the application's own may fail: the turn is settled all the same. */
  private isDue(
    { sessionId, orchestrator, policy }: CompactionTask,
    head: ConversationHead,
    seen: SeenConversation,
  ): boolean {
    try {
      return isDue(policy, orchestrator, head, seen, this.parts.tokens);
    } catch (error) {
      this.tell({ type: 'compaction-failed', orchestrator, sessionId, phase: 'load', error, failures: 0 });
      return false;
    }
  }

  private start(task: CompactionTask, automatic?: Automatic): Promise<CompactionResult> {
    const { sessionId } = task;
    const controller = new AbortController();
    const run: Run = { ...task, controller, checkpoints: new Map() };
    const done = this.run(run, automatic).finally(() => this.running.delete(sessionId));
    this.running.set(sessionId, { controller, done });
    return done;
  }

  private async run(run: Run, automatic?: Automatic): Promise<CompactionResult> {
    const { sessionId, orchestrator, controller } = run;
    const stored = await this.heads.read(sessionId);
    if (isLeased(stored)) throw new CompactionBusyError(sessionId);
    if (automatic ? !automatic.stillDue(stored) : await this.isEmpty(sessionId)) return NOTHING;
    const lose = (error: HeadLostError): void => controller.abort(error);
    const held = await HeldHead.take(this.heads, sessionId, stored, this.holder, this.parts.leaseMs, lose);
    if (!held) throw new CompactionBusyError(sessionId);
    try {
      const result = await this.passes(run, held, () => {
        if (automatic) this.tell({ type: 'compaction-suggested', orchestrator, sessionId });
      });
      // What cannot be compacted is not due again at once.
      const futile = result.messages === 0 ? automatic?.seen : undefined;
      const last = (head: ConversationHead): ConversationHead =>
        futile ? countedAnew(head, orchestrator, futile) : head;
      // It is done. When this fails, the lease lapses.
      await held.end(last).catch(() => undefined);
      return result;
    } catch (error) {
      throw await this.failed(run, held, error);
    } finally {
      held.stop();
    }
  }

  private async isEmpty(sessionId: string): Promise<boolean> {
    return (await this.parts.adapter.conversations.window(sessionId, 1)).length === 0;
  }

  /** One summary after another, until what is left is to be kept. */
  private async passes(run: Run, held: HeldHead, onBegin: () => void): Promise<CompactionResult> {
    let result = NOTHING;
    for (let more = true; more;) {
      const pass = await this.pass(run, held, result === NOTHING ? onBegin : () => undefined);
      more = pass.more;
      if (pass.result) result = joined(result, pass.result);
    }
    return result;
  }

  private async pass(
    run: Run,
    held: HeldHead,
    onBegin: () => void,
  ): Promise<{ more: boolean; result?: CompactionResult }> {
    const startedAt = performance.now();
    const { sessionId, orchestrator, policy, checkpoints } = run;
    const { conversations, checkpoints: store } = this.parts.adapter;
    const [base, part] = await during('load', async () => {
      const found = await this.baseOf(sessionId, held.head);
      const read = await readUncompacted(conversations, store, sessionId, found.through, policy.keep, checkpoints);
      return [found, read] as const;
    });
    const { replaced, more } = part;
    if (replaced.length === 0) return { more: false };
    onBegin();
    const { text, usage } = await during('summarize', () => this.summarize(run, base, replaced));
    const summary = summaryMessage(text, base, replaced, held.now());
    const replaces = summary.replaces!;
    await during('apply', async () => {
      const next: ConversationHead = {
        ...held.head,
        number: held.head.number + 1,
        previous: held.head.number,
        through: replaces.through,
        summary,
        applied: policy.onCompact === undefined,
        usage,
        failure: null,
        takenBack: null,
        ...this.thresholds(run, held.head, part),
      };
      const compaction = { number: next.number, summary: text, replaces, ...(usage ? { usage } : {}) };
      await abortable(run, (info) => policy.onCompact?.(compaction, info));
      await this.heads.keep(sessionId, held.head);
      await held.change((head) => ({ ...next, lease: head.lease }));
    });
    this.tell({
      type: 'compaction-applied',
      orchestrator,
      sessionId,
      number: held.head.number,
      replaces,
      messages: replaced.length,
      ...(usage ? { usage } : {}),
      durationMs: Math.round(performance.now() - startedAt),
    });
    return { more, result: { messages: replaced.length, summary: text, replaces, usage } };
  }

  /** The head to go on from: the present one, unless what it stood for was taken back. */
  private baseOf(sessionId: string, head: ConversationHead): Promise<ConversationHead> | ConversationHead {
    return head.takenBack === null ? head : this.earlierHead(sessionId, head);
  }

  /** The latest one before whose messages are all still there. */
  private async earlierHead(sessionId: string, { previous, takenBack }: ConversationHead): Promise<ConversationHead> {
    for (let number = previous; number !== null;) {
      const earlier = await this.heads.earlier(sessionId, number);
      if (!earlier) break;
      if (takenBack === null || earlier.through < takenBack) return earlier;
      number = earlier.previous;
    }
    return FIRST_HEAD;
  }

  private async summarize(
    run: Run,
    { summary }: ConversationHead,
    replaced: readonly Message[],
  ): Promise<{ text: string; usage: TokenUsage | null }> {
    const { sessionId, orchestrator, policy } = run;
    const messages = summary ? [summary, ...replaced] : replaced;
    const returned: unknown = await abortable(run, (info) => policy.summarize(messages, info));
    const { text, usage } = isPlainObject(returned) ? returned : { text: returned };
    const used = usage === undefined ? null : toTokenUsage(usage);
    // It is spent, whatever comes of it.
    if (used)
      await this.parts.addUsage(orchestrator, sessionId, used).catch((error: unknown) => this.logUsage(run, error));
    if (typeof text !== 'string' || text.trim() === '') {
      throw new InvalidInputError('summarize', 'must return a text that is not empty, or { text, usage }.');
    }
    return { text, usage: used };
  }

  /**
   * Where counting goes on: after what is behind the summary. What is kept counts for half a threshold at most, so that it does
   * not lead to the next compaction by itself.
   */
  private thresholds(
    { orchestrator, policy, checkpoints }: Run,
    { turns }: ConversationHead,
    { replaced, rest, more }: Uncompacted,
  ): Pick<ConversationHead, 'since' | 'turns'> {
    const through = replaced.at(-1)!.position;
    // The pass after this one has the rest.
    if (more) return { since: through, turns };
    const kept = (name: string): number => new Set(rest.filter(by(name)).map(({ turnId }) => turnId)).size;
    const counted = [...checkpoints].map(([name, checkpoint]) => {
      const most = name === orchestrator && policy.afterTurns ? Math.floor(policy.afterTurns / 2) : Infinity;
      return [name, (checkpoint?.turnIndex ?? -1) + 1 - Math.min(kept(name), most)] as const;
    });
    return { since: this.countFrom(policy, through, rest), turns: { ...turns, ...Object.fromEntries(counted) } };
  }

  private countFrom({ afterTokens }: CompactionPolicy, through: number, rest: readonly Message[]): number {
    if (afterTokens === undefined) return through;
    let left = afterTokens / 2;
    const first = rest.findLastIndex((message) => (left -= this.parts.tokens.of(message)) < 0);
    return first === -1 ? through : rest[first].position;
  }

  /** @returns what the command rejects with */
  private async failed(run: Run, held: HeldHead, error: unknown): Promise<Error> {
    const { sessionId, orchestrator, controller } = run;
    const { phase, cause } = error instanceof PhaseError ? error : { phase: 'apply' as const, cause: error };
    const reason: unknown = controller.signal.aborted ? controller.signal.reason : cause;
    if (reason instanceof ShuttingDownError) {
      await held.end().catch(() => undefined);
      return reason;
    }
    if (reason instanceof HeadLostError) {
      this.tell({ type: 'compaction-failed', orchestrator, sessionId, phase, error: reason, failures: 0 });
      return new CompactionBusyError(sessionId);
    }
    const count = (held.head.failure?.count ?? 0) + 1;
    const { message } = toErrorRecord(reason);
    const pauseMs = backoffMs({ attempts: 0, backoff: this.parts.backoff ?? BACKOFF }, count);
    const retryAt = new Date(held.now() + pauseMs).toISOString();
    const failure = { phase, message: readable(message), count, retryAt };
    // When the store fails, the lease lapses.
    await held.end((head) => ({ ...head, failure })).catch(() => undefined);
    this.tell({ type: 'compaction-failed', orchestrator, sessionId, phase, error: reason, failures: count });
    this.logger.warn(`Could not compact session ${hashed(sessionId)} (${phase}, for the ${count}. time): ${message}`);
    return new CompactionFailedError(sessionId, phase, reason);
  }

  private logUsage({ sessionId }: Run, error: unknown): void {
    this.logger.warn(`Could not count what the summary of session ${hashed(sessionId)} took: ${String(error)}`);
  }

  private tell(event: CompactionEvent): void {
    this.parts.emit(event);
  }
}

/** Says where something failed. */
class PhaseError extends Error {
  constructor(
    readonly phase: CompactionPhase,
    override readonly cause: unknown,
  ) {
    super(phase);
  }
}

async function during<T>(phase: CompactionPhase, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new PhaseError(phase, error);
  }
}

/** Work of the application's own that does not listen to the signal is not waited for. */
function abortable<T>(
  { sessionId, orchestrator, controller }: Run,
  work: (info: CompactionInfo) => Promise<T> | T,
): Promise<T> {
  const { signal } = controller;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    const result = (async () => work({ sessionId, orchestrator, signal }))();
    result.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** Somebody is at it, or it failed a moment ago. */
function isResting({ lease, failure }: ConversationHead, now: number): boolean {
  return [lease?.until, failure?.retryAt].some((time) => time !== undefined && Date.parse(time) > now);
}

function summaryMessage(text: string, base: ConversationHead, replaced: readonly Message[], now: number): Message {
  const through = replaced.at(-1)!.position;
  const from = base.summary?.replaces?.from ?? replaced[0].position;
  const createdAt = new Date(now).toISOString();
  return { id: mintId(), position: through, role: 'system', content: text, createdAt, replaces: { from, through } };
}

/** From where the turn has left it. */
function countedAnew(head: ConversationHead, orchestrator: string, seen: SeenConversation): ConversationHead {
  const turns = { ...head.turns, ...Object.fromEntries([[orchestrator, seen.turnIndex + 1]]) };
  return { ...head, turns, since: lastPosition(seen) };
}

function joined(before: CompactionResult, next: CompactionResult): CompactionResult {
  const usage = before.usage && next.usage ? addUsage(before.usage, next.usage) : (next.usage ?? before.usage);
  return { ...next, messages: before.messages + next.messages, usage };
}

function by(orchestrator: string): (message: Message) => boolean {
  return (message) => message.orchestrator === orchestrator;
}

/** What every store gives back unchanged. */
function readable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}]/gu, ' ');
}
