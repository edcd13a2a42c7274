import { type Checkpoint } from '../ledger/checkpoint.js';
import { type Message } from '../ledger/message.js';
import { type Session } from '../ledger/session.js';
import { type StateDocument, type StateName } from '../ledger/state.store.js';
import { type TurnEvent } from '../ledger/turn-event.js';
import { type StoredSignal } from '../ledger/turn.store.js';
import { type StoredStep } from '../ledger/turn-step.js';
import { type Turn } from '../ledger/turn.js';

/**
 * One thing that the store keeps of a session (NST-25). In this order: the session, its messages, each of its turns followed by
 * its steps, signals and events, its checkpoints by orchestrator with the latest first, its documents by namespace, scope and key.
 */
export type SessionRecord = { readonly sessionId: string } & (
  | { readonly type: 'session'; readonly session: Session }
  /** Also those that a summary stands for: the summaries are documents. */
  | { readonly type: 'message'; readonly message: Message }
  | { readonly type: 'turn'; readonly turn: Turn }
  | { readonly type: 'step'; readonly turnId: string; readonly step: StoredStep }
  | { readonly type: 'signal'; readonly turnId: string; readonly signal: StoredSignal }
  | { readonly type: 'event'; readonly turnId: string; readonly event: TurnEvent }
  | { readonly type: 'checkpoint'; readonly checkpoint: Checkpoint }
  | { readonly type: 'document'; readonly name: StateName; readonly document: StateDocument }
  /** What a tool keeps as secret: that it is there. */
  | { readonly type: 'document'; readonly name: StateName; readonly secret: true }
);
