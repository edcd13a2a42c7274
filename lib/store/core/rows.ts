import { type MessageRole } from '../../ledger/message.js';
import { type SessionState } from '../../ledger/session.js';
import { type LaneMode } from '../../ledger/lane.js';
import { type CancelMode, type TurnStatus } from '../../ledger/turn.js';

/** `?` may be null, `key` is part of the primary key. */
export type ColumnType = 'text' | 'integer' | 'text?' | 'integer?' | 'text key' | 'integer key';
export type Columns = Readonly<Record<string, ColumnType>>;

/**
 * The tables of stores that use these transitions. Rows are flat: times are milliseconds of the store's clock, and JSON is
 * text, so that a row is a copy by nature and reads the same from a Map and from a table. How the tables of SQL stores and
 * their indexes came about is in the migrations.
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
    /** Open turns: queued, running or waiting. */
    depth: 'integer',
    /** Of the last claim; begins at the clock, so that a lane made anew never accepts an older worker. */
    fence: 'integer',
    runningTurn: 'text?',
    /** The claim that holds the running turn. */
    holder: 'text?',
    leaseUntil: 'integer?',
    /** JSON: the turns that the running turn waits for, with the fence that saved them. null: none were saved. */
    awaited: 'text?',
    /** When somebody must look at the lane; null: not before something changes. */
    attentionAt: 'integer?',
    /** How often it was offered since the last claim. */
    offers: 'integer',
    /** What attentionAt was before the first of these offers. */
    firstAttentionAt: 'integer?',
    /** null: open. The row of the empty session id stands for all lanes, and has nothing else. */
    mode: 'text?',
    /** JSON: by namespace, the epoch that was begun last. null: none was. */
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
    turnIndex: 'integer?',
    reply: 'text?',
    error: 'text?',
    report: 'text?',
    /** JSON: the tokens that models took. */
    spent: 'text?',
    cancelMode: 'text?',
    supersededBy: 'text?',
    waitSignal: 'text?',
    waitStep: 'text?',
    waitUntil: 'integer?',
    acceptedAt: 'integer',
    startedAt: 'integer?',
    /** Those of its lane when it was claimed first. */
    epochs: 'text?',
    settledAt: 'integer?',
    /** The fence that settled it: tells a settle that is sent twice from one that is fenced. */
    settledFence: 'integer?',
    dueAt: 'integer?',
    /** For how long the turn's events stay once it is over; null while it has none. */
    eventTtl: 'integer?',
  },
  /** A batch of events. */
  turn_event: {
    turnId: 'text key',
    /** The offset of the last one of them. */
    lastOffset: 'integer key',
    /** The attempt that emitted them, and the number of the batch within it. */
    fence: 'integer',
    batch: 'integer',
    events: 'text',
  },
  step: {
    turnId: 'text key',
    /** The `stepId` of the key: what the row is found by. */
    id: 'text key',
    /** The key itself, as `stepText` writes it. */
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
    /** Fields that a checkpoint may lack, as JSON; null when it lacks all of them. */
    extras: 'text?',
  },
  message: {
    sessionId: 'text key',
    position: 'integer key',
    id: 'text',
    turnId: 'text?',
    orchestrator: 'text?',
    role: 'text',
    /** Content, name, metadata, tool calls. */
    body: 'text',
    createdAt: 'integer',
  },
  document: {
    namespace: 'text key',
    scope: 'text key',
    sessionId: 'text key',
    key: 'text key',
    value: 'text',
    /** Those appended since, with all that a batch has. */
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

/** A row of a table; `Values` narrows what some columns hold. */
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

/** A row in which every column that may be null is so, and the others are 0 or empty. */
export function emptyRow<Table extends keyof typeof TABLES>(table: Table): RowOf<Table> {
  const values = Object.entries<ColumnType>(TABLES[table]).map(([property, type]) => [property, EMPTY[type]]);
  return Object.fromEntries(values) as RowOf<Table>;
}

const EMPTY = { text: '', 'text key': '', integer: 0, 'integer key': 0, 'text?': null, 'integer?': null } as const;
