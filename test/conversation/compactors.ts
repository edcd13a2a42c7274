import { Logger } from '@nestjs/common';
import { type ConversationMessage, type MessageDraft, type SessionsAdapter } from 'nestjs-agent-sessions';
import { type NewCheckpoint } from 'nestjs-agent-sessions/adapter';
import { mintId } from '../../lib/common/ids.js';
import { type CompactionEvent } from '../../lib/conversation/compaction-events.js';
import { type CompactionOptions, toCompactionPolicy } from '../../lib/conversation/compaction-policy.js';
import { type CompactionTask } from '../../lib/conversation/compaction-run.js';
import { type CompactorParts, ConversationCompactor } from '../../lib/conversation/conversation-compactor.service.js';
import { type ConversationHead, viewThrough } from '../../lib/conversation/conversation-head.js';
import { ConversationHeads } from '../../lib/conversation/conversation-heads.js';
import {
  type CompactionParts,
  ConversationCompaction,
} from '../../lib/conversation/conversation-compaction.service.js';
import { type HistoryWindowOption, toHistoryWindow } from '../../lib/conversation/history-window.js';
import { MessageTokens } from '../../lib/conversation/message-tokens.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';

export const DESK = 'desk';

const opened: { compactors: ConversationCompactor[]; adapters: Set<SessionsAdapter> } = {
  compactors: [],
  adapters: new Set(),
};

// Intended failures must not fill the log.
beforeAll(() => {
  Logger.overrideLogger(false);
});

afterEach(async () => {
  await Promise.all(opened.compactors.splice(0).map((compactor) => compactor.stop()));
  await Promise.all([...opened.adapters].map(async (adapter) => adapter.close?.()));
  opened.adapters.clear();
});

/** A process that compacts. */
export interface Process {
  readonly adapter: SessionsAdapter;
  readonly compactor: ConversationCompactor;
  readonly events: CompactionEvent[];
}

type Changes = Pick<Partial<CompactorParts>, 'leaseMs' | 'timeoutMs' | 'backoff' | 'tokens'> & {
  readonly adapter?: Partial<CompactorParts['adapter']>;
};

export async function startProcess(
  adapter: SessionsAdapter,
  { adapter: ports, ...changes }: Changes = {},
): Promise<Process> {
  if (!opened.adapters.has(adapter)) await adapter.init?.();
  opened.adapters.add(adapter);
  const events: CompactionEvent[] = [];
  const compactor = new ConversationCompactor({
    tokens: new MessageTokens((text) => text.length),
    leaseMs: 5000,
    timeoutMs: 60_000,
    emit: (event) => events.push(event),
    ...changes,
    adapter: { ...adapter, ...ports },
  });
  opened.compactors.push(compactor);
  return { adapter, compactor, events };
}

/** Compaction by request in that process. A token is a character, plus four per message. */
export function compactionOf(
  { adapter, compactor }: Process,
  changes: Partial<CompactionParts> = {},
): ConversationCompaction {
  return new ConversationCompaction({
    adapter,
    compactor,
    tokens: new MessageTokens((text) => text.length),
    summarizer: () => ({ orchestrator: null, summarize: listing }),
    orchestrators: () => [DESK],
    ...changes,
  });
}

/** Summarizes by listing: the previous summary in parentheses, then the added messages. */
export function listing(messages: readonly ConversationMessage[]): string {
  return messages.map(({ content, replaces }) => (replaces ? `(${content as string})` : (content as string))).join(' ');
}

export function task(
  sessionId: string,
  options: Partial<CompactionOptions> = {},
  historyWindow: HistoryWindowOption = {},
): CompactionTask {
  return {
    sessionId,
    orchestrator: DESK,
    policy: toCompactionPolicy(DESK, { keep: 2, summarize: listing, ...options }, toHistoryWindow(DESK, historyWindow)),
  };
}

/** Appends the messages 1, 2, 3, ... */
export async function speak(
  { conversations }: SessionsAdapter,
  sessionId: string,
  from: number,
  to: number,
): Promise<ConversationMessage[]> {
  const texts = Array.from({ length: to - from + 1 }, (_, index) => `${from + index}`);
  return add(
    conversations,
    sessionId,
    texts.map((content): MessageDraft => ({ role: 'user', content })),
  );
}

/** Runs turns of two messages each. */
export async function speakInTurns(
  adapter: SessionsAdapter,
  sessionId: string,
  from: number,
  to: number,
  checkpoint: Partial<NewCheckpoint> = {},
): Promise<void> {
  for (let first = from; first < to; first += 2) {
    const turnIndex = (first - 1) / 2;
    const id = `turn-${turnIndex + 1}`;
    await adapter.turns.accept(turnRequest(id, { sessionId, foreignSession: true }));
    const claimed = await adapter.turns.claim(sessionId, claimRequest(id));
    await adapter.turns.settle(claimed!.hold, {
      status: 'awaiting-input',
      messages: [first, first + 1].map((n) => ({ id: mintId(), role: 'user', content: `${n}` })),
      checkpoint: {
        orchestrator: DESK,
        sessionId,
        turnIndex,
        state: {},
        lastRoute: [],
        signature: 'x',
        version: '1',
        summarizedThrough: 0,
        turnId: id,
        ...(turnIndex > 0 ? { parent: turnIndex - 1 } : {}),
        ...checkpoint,
      },
      keepCheckpoints: 'all',
    });
  }
}

export function add(
  conversations: SessionsAdapter['conversations'],
  sessionId: string,
  drafts: readonly MessageDraft[],
): Promise<ConversationMessage[]> {
  return conversations.append(
    sessionId,
    drafts.map((draft) => ({ ...draft, id: draft.id ?? mintId() })),
  );
}

export async function headOf({ state }: SessionsAdapter, sessionId: string): Promise<ConversationHead> {
  return (await new ConversationHeads(state).read(sessionId)).head;
}

/** The messages that a window is cut from: the summary, then the others. */
export async function readThroughHead(adapter: SessionsAdapter, sessionId: string): Promise<unknown[]> {
  const view = viewThrough(await headOf(adapter, sessionId), await adapter.conversations.window(sessionId, 1000));
  return [...view.pinned, ...(view.summary ? [view.summary] : []), ...view.messages].map(({ content }) => content);
}
