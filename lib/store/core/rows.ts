import { type MessageRole } from '../../ledger/message.js';
import { type SessionState } from '../../ledger/session.js';
import { type LaneMode } from '../../ledger/lane.js';
import { type CancelMode, type TurnStatus } from '../../ledger/turn.js';

/**
 * The rows of stores that use these transitions, flat: times are milliseconds of the store's clock, and JSON is text, so
 * that a row is a copy by nature and reads the same from a Map and from a table.
 */

export interface SessionRow {
  readonly id: string;
  readonly userId: string;
  readonly workspaceId: string | null;
  readonly state: SessionState;
  readonly createdAt: number;
  readonly lastActivityAt: number;
  readonly stateChangedAt: number | null;
  readonly surfaces: string;
  readonly metadata: string;
  readonly version: number;
}

export interface LaneRow {
  readonly sessionId: string;
  readonly nextPosition: number;
  /** Open turns: queued, running or waiting. */
  readonly depth: number;
  /** Of the last claim; begins at the clock, so that a lane made anew never accepts an older worker. */
  readonly fence: number;
  readonly runningTurn: string | null;
  /** The claim that holds the running turn. */
  readonly holder: string | null;
  readonly leaseUntil: number | null;
  /** JSON: the turns that the running turn waits for, with the fence that saved them. null: none were saved. */
  readonly awaited: string | null;
  /** When somebody must look at the lane; null: not before something changes. */
  readonly attentionAt: number | null;
  /** How often it was offered since the last claim. */
  readonly offers: number;
  /** What attentionAt was before the first of these offers. */
  readonly firstAttentionAt: number | null;
  /** null: open. The row of the empty session id stands for all lanes, and has nothing else. */
  readonly mode: Exclude<LaneMode, 'open'> | null;
  /** JSON: by namespace, the epoch that was begun last. null: none was. */
  readonly epochs: string | null;
}

export interface TurnRow {
  readonly id: string;
  readonly sessionId: string;
  readonly position: number;
  readonly orchestrator: string;
  readonly version: string;
  readonly request: string;
  readonly attributes: string;
  readonly idempotencyKey: string | null;
  readonly requestHash: string | null;
  readonly status: TurnStatus;
  readonly failures: number;
  readonly lost: number;
  readonly turnIndex: number | null;
  readonly reply: string | null;
  readonly error: string | null;
  readonly report: string | null;
  /** JSON: the tokens that models took. */
  readonly spent: string | null;
  readonly cancelMode: CancelMode | null;
  readonly supersededBy: string | null;
  readonly waitSignal: string | null;
  readonly waitStep: string | null;
  readonly waitUntil: number | null;
  readonly acceptedAt: number;
  readonly startedAt: number | null;
  /** Those of its lane when it was claimed first. */
  readonly epochs: string | null;
  readonly settledAt: number | null;
  /** The fence that settled it: tells a settle that is sent twice from one that is fenced. */
  readonly settledFence: number | null;
  readonly dueAt: number | null;
  /** For how long the turn's events stay once it is over; null while it has none. */
  readonly eventTtl: number | null;
}

/** A batch of events. */
export interface TurnEventRow {
  readonly turnId: string;
  /** The offset of the last one of them. */
  readonly lastOffset: number;
  /** The attempt that emitted them, and the number of the batch within it. */
  readonly fence: number;
  readonly batch: number;
  readonly events: string;
}

/** A lane and its head as they are shown; what the head has is null while there is none. */
export interface LaneViewRow
  extends
    Pick<LaneRow, 'sessionId' | 'depth' | 'holder' | 'leaseUntil' | 'mode'>,
    Nullable<
      Pick<TurnRow, 'orchestrator' | 'status' | 'failures' | 'lost' | 'cancelMode' | 'waitSignal' | 'waitUntil'>
    >,
    Nullable<Pick<TurnRow, 'acceptedAt' | 'startedAt' | 'dueAt'>> {
  readonly turnId: string | null;
  /** Of the turn behind the head. */
  readonly nextAcceptedAt: number | null;
}

type Nullable<Row> = { readonly [Property in keyof Row]: Row[Property] | null };

export interface StepRow {
  readonly turnId: string;
  /** The `stepId` of the key: what the row is found by. */
  readonly id: string;
  /** The key itself, as `stepText` writes it. */
  readonly stepKey: string;
  readonly value: string;
}

export type StepRowKey = Pick<StepRow, 'turnId' | 'id'>;

export interface SignalRow {
  readonly turnId: string;
  readonly name: string;
  readonly payload: string;
}

export interface CheckpointRow {
  readonly orchestrator: string;
  readonly sessionId: string;
  readonly turnIndex: number;
  readonly turnId: string | null;
  readonly parent: number | null;
  readonly state: string;
  readonly lastRoute: string;
  readonly signature: string;
  readonly version: string;
  readonly summarizedThrough: number;
  readonly savedAt: number;
  /** Fields that a checkpoint may lack, as JSON; null when it lacks all of them. */
  readonly extras: string | null;
}

export interface MessageRow {
  readonly sessionId: string;
  readonly position: number;
  readonly id: string;
  readonly turnId: string | null;
  readonly orchestrator: string | null;
  readonly role: MessageRole;
  /** Content, name, metadata, tool calls. */
  readonly body: string;
  readonly createdAt: number;
}

export interface DocumentRow {
  readonly namespace: string;
  readonly scope: string;
  readonly sessionId: string;
  readonly key: string;
  readonly value: string;
  /** Those appended since, with all that a batch has. */
  readonly batches: string;
  readonly version: number;
  readonly createdAt: number;
  readonly accessedAt: number;
  readonly expiresAt: number | null;
}

export interface LeaseRow {
  readonly name: string;
  readonly holder: string;
  readonly fence: number;
  readonly expiresAt: number;
}

export interface TombstoneRow {
  readonly sessionId: string;
  readonly erasedAt: number;
}
