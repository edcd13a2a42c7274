import { type TokenCounts } from '../common/token-counts.js';
import { type CompactionPhase } from './compaction.errors.js';
import { type MessageSpan } from '../ledger/message.js';

/** An event of a conversation's compaction (BOT-43, BOT-44). */
export type CompactionEvent = { readonly orchestrator: string; readonly sessionId: string } & (
  | {
      /** The conversation exceeds the policy's threshold, and this process starts to compact it. */
      readonly type: 'compaction-suggested';
    }
  | {
      readonly type: 'compaction-applied';
      readonly number: number;
      /** The positions that the summary covers, including the positions of the previous summary. */
      readonly replaces: MessageSpan;
      /** The number of messages that the summary newly covers. */
      readonly messages: number;
      readonly usage?: TokenCounts;
      readonly durationMs: number;
    }
  | {
      /** The turn stays settled, and the conversation is unchanged. */
      readonly type: 'compaction-failed';
      readonly phase: CompactionPhase;
      readonly error: unknown;
      /** The number of consecutive failures; 0 if another process took over the session. */
      readonly failures: number;
    }
);
