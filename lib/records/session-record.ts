import { type Checkpoint } from '../ledger/checkpoint.js';
import { type ConversationMessage } from '../ledger/message.js';
import { type Session } from '../ledger/session.js';
import { type StateDocument, type StateName } from '../ledger/state.store.js';
import { type TurnEvent } from '../ledger/turn-event.js';
import { type StoredSignal } from '../ledger/turn.store.js';
import { type StoredStep } from '../ledger/turn-step.js';
import { type Turn } from '../ledger/turn.js';

/**
 * A record of a session (NST-25). The order is: the session; its messages; each turn followed by its steps, signals and
 * events; checkpoints by orchestrator, latest first; and documents by namespace, scope and key.
 */
export type SessionRecord = { readonly sessionId: string } & (
  | { readonly type: 'session'; readonly session: Session }
  /** Includes messages that a summary replaces. Summaries are documents. */
  | { readonly type: 'message'; readonly message: ConversationMessage }
  | { readonly type: 'turn'; readonly turn: Turn }
  | { readonly type: 'step'; readonly turnId: string; readonly step: StoredStep }
  | { readonly type: 'signal'; readonly turnId: string; readonly signal: StoredSignal }
  | { readonly type: 'event'; readonly turnId: string; readonly event: TurnEvent }
  | { readonly type: 'checkpoint'; readonly checkpoint: Checkpoint }
  | { readonly type: 'document'; readonly name: StateName; readonly document: StateDocument }
  /** A secret tool entry: only its existence. */
  | { readonly type: 'document'; readonly name: StateName; readonly secret: true }
);
