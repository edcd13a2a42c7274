import { type TokenUsage } from '../common/token-usage.js';
import { type CompactionPhase } from './compaction.errors.js';
import { type MessageSpan } from '../ledger/message.js';

/** What happened to a conversation beside its turns (BOT-43, BOT-44). */
export type CompactionEvent = { readonly orchestrator: string; readonly sessionId: string } & (
  | {
      /** It has grown beyond the policy's threshold, and this process compacts it. */
      readonly type: 'compaction-suggested';
    }
  | {
      readonly type: 'compaction-applied';
      readonly number: number;
      /** The positions that the summary stands for, those of the summary before included. */
      readonly replaces: MessageSpan;
      /** How many messages it adds to those that were behind the summary before. */
      readonly messages: number;
      readonly usage?: TokenUsage;
      readonly durationMs: number;
    }
  | {
      /** The turn stays settled, and the conversation as it was. */
      readonly type: 'compaction-failed';
      readonly phase: CompactionPhase;
      readonly error: unknown;
      /** How often in a row; 0 when another process has taken the session over. */
      readonly failures: number;
    }
);
