import { type ConversationLog, type NewMessage } from '../ledger/conversation.store.js';
import { type StateSnapshot } from '../ledger/checkpoint.js';
import { type SeenConversation } from '../conversation/compaction-thresholds.js';
import { type ConversationHead, isPinned, readHead, viewThrough } from '../conversation/conversation-head.js';
import { type MessageTokens } from '../conversation/message-tokens.js';
import { isOfLog, logOf, undoneIn } from '../conversation/log-epoch.js';
import { type Message, type MessageDraft, type MessageSpan } from '../ledger/message.js';
import { reportedUsage, stillReported, unreportedUsage } from '../conversation/spent-usage.js';
import { windowWithoutUndone, withoutUndone } from '../conversation/undone-messages.js';
import { type ConversationView, cutWindow, viewOf } from '../conversation/window.js';
import { type TokenUsage } from '../common/token-usage.js';
import { type StateDocument } from '../ledger/state.store.js';
import { type ClaimedTurn } from '../ledger/turn.store.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type OrchestratorEventBody } from './orchestrator-events.js';
import { historyOf } from './orchestrator.registry.js';
import { type CompactionReport } from './turn-report.js';
import { type UsageRole } from './usage-tally.js';

/** What one attempt of a turn sees of its conversation. */
export class TurnConversation {
  readonly head: ConversationHead | null;
  /** The epoch of the log. */
  readonly log: string;
  /** Where messages of the log stand that were taken back. */
  readonly undone: readonly MessageSpan[];
  private view: ConversationView;
  /** The end of the log, as far as it counts, and the position that it was read from. */
  private read: Pick<SeenConversation, 'history' | 'from'>;
  private readonly cut: { [reader in 'router' | 'agents']?: readonly (Message | MessageDraft)[] } = {};

  /** @param document of the head; `null` where none was claimed, or there is none */
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
    const counted = this.hasGaps ? withoutUndone(history, this.undone) : history;
    this.read = { history: counted, from: beginningOf(history) };
    this.view = turn.request.history ? viewOf(turn.request.history) : viewThrough(this.head, counted);
  }

  /** What was claimed of the log may have lost messages that were taken back: {@link load} comes before a window then. */
  get hasGaps(): boolean {
    return this.undone.length > 0;
  }

  /** Reads the log further back where something is missing. */
  async load(log: Pick<ConversationLog, 'page'>): Promise<void> {
    const { turn, history } = this.claimed;
    if (turn.request.history) return;
    const through = this.head?.hiddenThrough ?? 0;
    const wanted = { after: through, limit: historyOf(this.definition) };
    const counted = await windowWithoutUndone(log, turn.sessionId, history, wanted, this.undone);
    this.view = viewThrough(this.head, counted);
    if (counted === history) return;
    // It was read further back: to the summary, unless there was enough before.
    const from = counted.length < wanted.limit ? through + 1 : beginningOf(counted);
    this.read = { history: counted, from: Math.min(from, this.read.from) };
  }

  /** What each part of the orchestrator is given; cut once, when it is first asked for. */
  readonly window = (role: UsageRole): readonly (Message | MessageDraft)[] => {
    const reader = role === 'router' ? 'router' : 'agents';
    let window = this.cut[reader];
    if (!window) {
      const { [reader]: shape, router } = this.definition.historyWindow;
      const same = shape === router ? this.cut.router : undefined;
      window = same ?? cutWindow(shape, this.view, this.tokens, `historyWindow.${reader}`);
      this.cut[reader] = window;
      this.tell({ type: 'history-windowed', for: reader, available: this.available, kept: window.length });
    }
    return window;
  };

  /** For the turn's checkpoint. */
  get summarizedThrough(): number {
    return this.head?.through ?? this.reportedThrough;
  }

  /** What summaries took, and no settled turn of the orchestrator has reported. */
  get usage(): TokenUsage | null {
    return unreportedUsage(this.head, this.definition.name, this.claimed.checkpoint);
  }

  /** For the checkpoint of a turn that reports {@link usage}. */
  get snapshots(): readonly StateSnapshot[] {
    const reported = reportedUsage(this.head, this.definition.name);
    if (reported) return [reported];
    const { checkpoint } = this.claimed;
    // A turn without the head knows nothing newer: it was claimed without the conversation.
    return (checkpoint && !this.head && stillReported([], checkpoint)) || [];
  }

  /**
   * What came of compaction since the orchestrator's turn before; of failures as long as they last.
   * @param usage what the turn reports of it
   */
  compaction(usage: TokenUsage | null): CompactionReport | undefined {
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

  /** For the compactor, once the turn has settled. */
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

/** The log's first message may stand before a gap. */
function beginningOf(history: readonly Message[]): number {
  const [first, second] = history;
  if (!first) return 1;
  return second && isPinned(first) && second.position > 2 ? second.position : first.position;
}
