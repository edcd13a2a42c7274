import {
  type CheckpointRow,
  type DocumentRow,
  type LaneRow,
  type LeaseRow,
  type MessageRow,
  type SessionRow,
  type SignalRow,
  type StepRow,
  type TombstoneRow,
  type TurnEventRow,
  type TurnRow,
} from '../core/rows.js';

/** `?` may be null, `key` is part of the primary key. */
export type ColumnType = 'text' | 'integer' | 'text?' | 'integer?' | 'text key' | 'integer key';

export interface TableDefinition<Property extends string = string> {
  readonly columns: Readonly<Record<Property, ColumnType>>;
}

/** Which sessions hold a surface; the order of attachment is in the session's own row. */
export interface SurfaceRow {
  readonly surfaceId: string;
  readonly sessionId: string;
}

/** Which migration the tables are at. */
export interface SchemaRow {
  readonly version: number;
  /** The first migration whose package can still use them: two versions run side by side during a deploy. */
  readonly usableFrom: number;
}

/** The tables as they are today, for entities and for statements. How they and their indexes came about is in the migrations. */
export const TABLES = {
  session: table<SessionRow>({
    columns: {
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
  }),
  session_surface: table<SurfaceRow>({
    columns: { surfaceId: 'text key', sessionId: 'text key' },
  }),
  lane: table<LaneRow>({
    columns: {
      sessionId: 'text key',
      nextPosition: 'integer',
      depth: 'integer',
      fence: 'integer',
      runningTurn: 'text?',
      holder: 'text?',
      leaseUntil: 'integer?',
      awaited: 'text?',
      attentionAt: 'integer?',
      offers: 'integer',
      firstAttentionAt: 'integer?',
      mode: 'text?',
      epochs: 'text?',
    },
  }),
  turn: table<TurnRow>({
    columns: {
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
      spent: 'text?',
      cancelMode: 'text?',
      supersededBy: 'text?',
      waitSignal: 'text?',
      waitStep: 'text?',
      waitUntil: 'integer?',
      acceptedAt: 'integer',
      startedAt: 'integer?',
      epochs: 'text?',
      settledAt: 'integer?',
      settledFence: 'integer?',
      dueAt: 'integer?',
      eventTtl: 'integer?',
    },
  }),
  turn_event: table<TurnEventRow>({
    columns: { turnId: 'text key', lastOffset: 'integer key', fence: 'integer', batch: 'integer', events: 'text' },
  }),
  step: table<StepRow>({
    columns: {
      turnId: 'text key',
      id: 'text key',
      stepKey: 'text',
      value: 'text',
    },
  }),
  signal: table<SignalRow>({ columns: { turnId: 'text key', name: 'text key', payload: 'text' } }),
  checkpoint: table<CheckpointRow>({
    columns: {
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
      extras: 'text?',
    },
  }),
  message: table<MessageRow>({
    columns: {
      sessionId: 'text key',
      position: 'integer key',
      id: 'text',
      turnId: 'text?',
      orchestrator: 'text?',
      role: 'text',
      body: 'text',
      createdAt: 'integer',
    },
  }),
  document: table<DocumentRow>({
    columns: {
      namespace: 'text key',
      scope: 'text key',
      sessionId: 'text key',
      key: 'text key',
      value: 'text',
      batches: 'text',
      version: 'integer',
      createdAt: 'integer',
      accessedAt: 'integer',
      expiresAt: 'integer?',
    },
  }),
  lease: table<LeaseRow>({
    columns: { name: 'text key', holder: 'text', fence: 'integer', expiresAt: 'integer' },
  }),
  tombstone: table<TombstoneRow>({ columns: { sessionId: 'text key', erasedAt: 'integer' } }),
  schema: table<SchemaRow>({ columns: { version: 'integer key', usableFrom: 'integer' } }),
} as const;

export type TableName = keyof typeof TABLES;

/** Columns are named in snake case. */
export function columnName(property: string): string {
  return property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Checks that a definition has just the row's properties. */
function table<Row>(definition: TableDefinition<keyof Row & string>): TableDefinition {
  return definition;
}
