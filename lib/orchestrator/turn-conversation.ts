import { type ConversationLog, type NewMessage } from '../ledger/conversation.store.js';
import { type StateSnapshot } from '../ledger/checkpoint.js';
import { type SeenConversation } from '../conversation/compaction-thresholds.js';
import { type ConversationHead, isPinned, readHead, viewThrough } from '../conversation/conversation-head.js';
import { type MessageTokens } from '../conversation/message-tokens.js';
import { isOfLog, logOf, undoneIn } from '../conversation/log-epoch.js';
import { type ConversationMessage, type MessageDraft, type MessageSpan } from '../ledger/message.js';
import { reportedUsage, stillReported, unreportedUsage } from '../conversation/spent-usage.js';
import { windowWithoutUndone, withoutUndone } from '../conversation/undone-messages.js';
import { type ConversationView, cutWindow, viewOf } from '../conversation/window.js';
import { answeredBy, type AnsweredNext } from '../conversation/close-calls.js';
import { type TokenCounts } from '../common/token-counts.js';
import { type StateDocument } from '../ledger/state.store.js';
import { type ClaimedTurn } from '../ledger/turn.store.js';
import { userMessage } from '../ledger/user-message.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type OrchestratorEventBody } from './orchestrator-events.js';
import { historyOf } from './orchestrator.registry.js';
import { type CompactionReport } from './turn-report.js';
import { type UsageRole } from './usage-tally.js';

/** The conversation as one attempt of a turn sees it. */
export class TurnConversation {
  readonly head: ConversationHead | null;
  /** The epoch of the log, which changes with each reset. */
  readonly log: string;
  /** The positions of undone messages in the log. */
  readonly undone: readonly MessageSpan[];
  private view: ConversationView;
  /** The end of the log without undone messages, and the position from which it was read. */
  private read: Pick<SeenConversation, 'history' | 'from'>;
  /** The open calls that the turn's input answers. */
  private readonly answered: AnsweredNext;
  /** The windows that were cut, by the part of the orchestrator that reads them. */
  private readonly cut: { [reader in 'router' | 'agents']?: readonly (ConversationMessage | MessageDraft)[] } = {};

  /** @param document of the head; `null` if none was claimed or none exists */
  constructor(
    private readonly definition: OrchestratorDefinition,
    private readonly claimed: ClaimedTurn,
    document: StateDocument | null,
    private readonly tokens: MessageTokens,
    private readonly tell: (event: OrchestratorEventBody) => void,
  ) {
    this.head = document && readHead(document);
    this.log = logOf(claimed);
    this.undone = undoneIn(claimed.checkpoint, this.log);
    const { turn, history } = claimed;
    this.answered = answeredBy(userMessage(turn));
    const visible = this.hasGaps ? withoutUndone(history, this.undone) : history;
    this.read = { history: visible, from: beginningOf(history) };
    this.view = turn.request.history ? viewOf(turn.request.history) : viewThrough(this.head, visible);
  }

  /** True if undone messages may be missing from the claimed history. Call {@link load} before a window then. */
  get hasGaps(): boolean {
    return this.undone.length > 0;
  }

  /** Reads further back in the log if messages are missing. */
  async load(log: Pick<ConversationLog, 'page'>): Promise<void> {
    const { turn, history } = this.claimed;
    if (turn.request.history) return;
    const through = this.head?.hiddenThrough ?? 0;
    const wanted = { after: through, limit: historyOf(this.definition) };
    const visible = await windowWithoutUndone(log, turn.sessionId, history, wanted, this.undone);
    this.view = viewThrough(this.head, visible);
    if (visible === history) return;
    // The log was read backwards to the summary, or until enough messages were found.
    const from = visible.length < wanted.limit ? through + 1 : beginningOf(visible);
    this.read = { history: visible, from: Math.min(from, this.read.from) };
  }

  /** Returns the history for a part of the orchestrator. It is cut once, at the first use. */
  readonly window = (role: UsageRole): readonly (ConversationMessage | MessageDraft)[] => {
    const reader = role === 'router' ? 'router' : 'agents';
    let window = this.cut[reader];
    if (!window) {
      const { [reader]: shape, router } = this.definition.historyWindow;
      const same = shape === router ? this.cut.router : undefined;
      window = same ?? cutWindow(shape, this.view, this.tokens, `historyWindow.${reader}`, this.answered);
      this.cut[reader] = window;
      this.tell({ type: 'history-windowed', for: reader, available: this.available, kept: window.length });
    }
    return window;
  };

  /** The position up to which messages are summarized, for the turn's checkpoint. */
  get summarizedThrough(): number {
    return this.head?.through ?? this.reportedThrough;
  }

  /** The tokens of summaries that no settled turn of the orchestrator has reported. */
  get usage(): TokenCounts | null {
    return unreportedUsage(this.head, this.definition.name, this.claimed.checkpoint);
  }

  /** The snapshots for the checkpoint of a turn that reports {@link usage}. */
  get snapshots(): readonly StateSnapshot[] {
    const reported = reportedUsage(this.head, this.definition.name);
    if (reported) return [reported];
    const { checkpoint } = this.claimed;
    // Without the head, the turn has nothing newer: it was claimed without the conversation.
    return (checkpoint && !this.head && stillReported([], checkpoint)) || [];
  }

  /**
   * Reports compactions since the orchestrator's previous turn, and failures as long as they last.
   * @param usage the tokens that the turn reports for it
   */
  compaction(usage: TokenCounts | null): CompactionReport | undefined {
    if (!this.head) return undefined;
    const { failure, through, number } = this.head;
    if (failure) {
      const { phase, message, count, retryAt } = failure;
      return { status: 'failed', phase, message, failures: count, retryAt };
    }
    if (through === this.reportedThrough) return undefined;
    const status = through > this.reportedThrough ? 'applied' : 'restored';
    return { status, number, through, ...(status === 'applied' && usage ? { usage } : {}) };
  }

  /** Returns the conversation for the compactor, after the turn has settled. */
  seen(turnIndex: number, added: readonly NewMessage[]): SeenConversation {
    return { turnIndex, ...this.read, added };
  }

  private get reportedThrough(): number {
    const { checkpoint } = this.claimed;
    return checkpoint && isOfLog(checkpoint, this.log) ? checkpoint.summarizedThrough : 0;
  }

  private get available(): number {
    const { pinned, summary, messages } = this.view;
    return pinned.length + (summary ? 1 : 0) + messages.length;
  }
}

/** Returns the position from which a history is complete. Skips a pinned first message that is followed by a gap. */
function beginningOf(history: readonly ConversationMessage[]): number {
  const [first, second] = history;
  if (!first) return 1;
  return second && isPinned(first) && second.position > 2 ? second.position : first.position;
}
