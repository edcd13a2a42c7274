import { type MessageRole } from '../../ledger/message.js';
import { type SessionState } from '../../ledger/session.js';
import { type LaneMode } from '../../ledger/lane.js';
import { type CancelMode, type TurnStatus } from '../../ledger/turn.js';

/** `?` may be null, `key` is part of the primary key. */
export type ColumnType = 'text' | 'integer' | 'text?' | 'integer?' | 'text key' | 'integer key';
export type Columns = Readonly<Record<string, ColumnType>>;

/**
 * The tables of stores that use these transitions. Rows are flat: times are milliseconds of the store's clock, and JSON is
 * stored as strings. A row is therefore easy to copy, and is the same in a Map and in a SQL table. The migrations define the
 * SQL tables and their indexes.
 */
export const TABLES = {
  session: {
    id: 'text key',
    userId: 'text',
    workspaceId: 'text?',
    state: 'text',
    createdAt: 'integer',
    lastActivityAt: 'integer',
    stateChangedAt: 'integer?',
    surfaces: 'text',
    metadata: 'text',
    version: 'integer',
  },
  lane: {
    sessionId: 'text key',
    nextPosition: 'integer',
    /** The number of open turns: queued, running or waiting. */
    depth: 'integer',
    /** The fence of the last claim. Starts at the clock, so that a recreated lane never accepts an older worker. */
    fence: 'integer',
    runningTurn: 'text?',
    /** The claim that holds the running turn. */
    holder: 'text?',
    leaseUntil: 'integer?',
    /** The turns that the running turn waits for and the fence that saved them, as JSON. null if none were saved. */
    awaited: 'text?',
    /** When the lane is next due. null: not before a change. */
    attentionAt: 'integer?',
    /** The number of offers since the last claim or renewal. */
    offers: 'integer',
    /** The value of attentionAt before the first of these offers. */
    firstAttentionAt: 'integer?',
    /** null: open. The row with the empty session id applies to all lanes, and sets no other column. */
    mode: 'text?',
    /** The latest epoch of each namespace, as JSON. null if there is none. */
    epochs: 'text?',
  },
  turn: {
    id: 'text key',
    sessionId: 'text',
    position: 'integer',
    orchestrator: 'text',
    version: 'text',
    request: 'text',
    attributes: 'text',
    idempotencyKey: 'text?',
    requestHash: 'text?',
    status: 'text',
    failures: 'integer',
    lost: 'integer',
    /** The attempts lost since a step was stored. */
    lostSinceStep: 'integer',
    turnIndex: 'integer?',
    reply: 'text?',
    error: 'text?',
    report: 'text?',
    /** The tokens that models used, as JSON. */
    spent: 'text?',
    cancelMode: 'text?',
    /** The messages that stay when the turn is cancelled, as JSON in the store's form. */
    keep: 'text?',
    supersededBy: 'text?',
    waitSignal: 'text?',
    waitStep: 'text?',
    /** The other signals that the turn waits for, as JSON. It has a meaning only while waitSignal is set. */
    waitOthers: 'text?',
    waitUntil: 'integer?',
    acceptedAt: 'integer',
    startedAt: 'integer?',
    /** The epochs of the lane at the turn's first claim. */
    epochs: 'text?',
    settledAt: 'integer?',
    /** The fence of the settle. It distinguishes a repeated settle from a fenced one. */
    settledFence: 'integer?',
    dueAt: 'integer?',
    /** How long the turn's events are kept after it ends. null while it has no events. */
    eventTtl: 'integer?',
  },
  /** A batch of events. */
  turn_event: {
    turnId: 'text key',
    /** The offset of the last event of the batch. */
    lastOffset: 'integer key',
    /** The attempt that emitted the batch, and the number of the batch in the attempt. */
    fence: 'integer',
    batch: 'integer',
    events: 'text',
  },
  step: {
    turnId: 'text key',
    /** The `stepId` of the key, which identifies the row. */
    id: 'text key',
    /** The key, as `stepText` writes it. */
    stepKey: 'text',
    value: 'text',
  },
  signal: {
    turnId: 'text key',
    name: 'text key',
    payload: 'text',
  },
  checkpoint: {
    orchestrator: 'text key',
    sessionId: 'text key',
    turnIndex: 'integer key',
    turnId: 'text?',
    parent: 'integer?',
    state: 'text',
    lastRoute: 'text',
    signature: 'text',
    version: 'text',
    summarizedThrough: 'integer',
    savedAt: 'integer',
    /** The optional fields of a checkpoint, as JSON. null if all are absent. */
    extras: 'text?',
  },
  message: {
    sessionId: 'text key',
    position: 'integer key',
    id: 'text',
    turnId: 'text?',
    orchestrator: 'text?',
    role: 'text',
    /** The content, name, metadata and tool calls. */
    body: 'text',
    createdAt: 'integer',
  },
  document: {
    namespace: 'text key',
    scope: 'text key',
    sessionId: 'text key',
    key: 'text key',
    value: 'text',
    /** The batches appended since, complete. */
    batches: 'text',
    version: 'integer',
    createdAt: 'integer',
    accessedAt: 'integer',
    expiresAt: 'integer?',
  },
  lease: {
    name: 'text key',
    holder: 'text',
    fence: 'integer',
    expiresAt: 'integer',
  },
  tombstone: {
    sessionId: 'text key',
    erasedAt: 'integer',
  },
} as const satisfies Readonly<Record<string, Columns>>;

/** A row of a table. `Values` narrows the types of some columns. */
type RowOf<
  Table extends keyof typeof TABLES,
  Values extends Partial<Record<keyof (typeof TABLES)[Table], unknown>> = Record<never, never>,
> = {
  readonly [Property in keyof (typeof TABLES)[Table]]: Property extends keyof Values
    ? Values[Property]
    : ValueOf<(typeof TABLES)[Table][Property]>;
};
type ValueOf<Type> = (Type extends `text${string}` ? string : number) | (Type extends `${string}?` ? null : never);

export type SessionRow = RowOf<'session', { state: SessionState }>;
export type LaneRow = RowOf<'lane', { mode: Exclude<LaneMode, 'open'> | null }>;
export type TurnRow = RowOf<'turn', { status: TurnStatus; cancelMode: CancelMode | null }>;
export type TurnEventRow = RowOf<'turn_event'>;
export type StepRow = RowOf<'step'>;
export type StepRowKey = Pick<StepRow, 'turnId' | 'id'>;
export type SignalRow = RowOf<'signal'>;
export type CheckpointRow = RowOf<'checkpoint'>;
export type MessageRow = RowOf<'message', { role: MessageRole }>;
export type DocumentRow = RowOf<'document'>;
export type LeaseRow = RowOf<'lease'>;
export type TombstoneRow = RowOf<'tombstone'>;

/** The public view of a lane and its head. The head's columns are null if the lane has no head. */
export interface LaneViewRow
  extends
    Pick<LaneRow, 'sessionId' | 'depth' | 'holder' | 'leaseUntil' | 'mode'>,
    Nullable<
      Pick<TurnRow, 'orchestrator' | 'status' | 'failures' | 'lost' | 'cancelMode' | 'waitSignal' | 'waitUntil'>
    >,
    Nullable<Pick<TurnRow, 'acceptedAt' | 'startedAt' | 'dueAt'>> {
  readonly turnId: string | null;
  /** The time of acceptance of the turn behind the head. */
  readonly nextAcceptedAt: number | null;
}

type Nullable<Row> = { readonly [Property in keyof Row]: Row[Property] | null };

/** Returns a row in which nullable columns are null and all others are 0 or empty. */
export function emptyRow<Table extends keyof typeof TABLES>(table: Table): RowOf<Table> {
  const values = Object.entries<ColumnType>(TABLES[table]).map(([property, type]) => [property, EMPTY[type]]);
  return Object.fromEntries(values) as RowOf<Table>;
}

const EMPTY = { text: '', 'text key': '', integer: 0, 'integer key': 0, 'text?': null, 'integer?': null } as const;
