import { EntitySchema, type EntitySchemaColumnOptions } from 'typeorm';
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
  type TurnRow,
} from '../embedded/rows.js';

const text: EntitySchemaColumnOptions = { type: 'text' };
const integer: EntitySchemaColumnOptions = { type: 'integer' };
const optional = (column: EntitySchemaColumnOptions): EntitySchemaColumnOptions => ({ ...column, nullable: true });
const key = (column: EntitySchemaColumnOptions): EntitySchemaColumnOptions => ({ ...column, primary: true });

/**
 * The tables as TypeORM entities, for an application that wants to read them or to generate migrations of its own
 * beside them. Never write through them: order, fences and idempotency are decided by the adapter's own operations.
 */
export function sessionsEntities(tablePrefix = 'agent_'): EntitySchema[] {
  return [
    table<SessionRow>(tablePrefix, 'session', {
      columns: {
        id: key(text),
        userId: text,
        workspaceId: optional(text),
        state: text,
        createdAt: integer,
        lastActivityAt: integer,
        stateChangedAt: optional(integer),
        surfaces: text,
        metadata: text,
        version: integer,
      },
      indices: [
        { name: 'user', columns: ['userId', 'lastActivityAt'] },
        { name: 'state', columns: ['state', 'lastActivityAt'] },
      ],
    }),
    table<{ surfaceId: string; sessionId: string }>(tablePrefix, 'session_surface', {
      columns: { surfaceId: key(text), sessionId: key(text) },
      withoutRowid: true,
    }),
    table<LaneRow>(tablePrefix, 'lane', {
      columns: {
        sessionId: key(text),
        nextPosition: integer,
        depth: integer,
        fence: integer,
        runningTurn: optional(text),
        holder: optional(text),
        leaseUntil: optional(integer),
        attentionAt: optional(integer),
        offers: integer,
      },
      indices: [{ name: 'attention', columns: ['attentionAt'], where: '"attention_at" IS NOT NULL' }],
    }),
    table<TurnRow>(tablePrefix, 'turn', {
      columns: {
        id: key(text),
        sessionId: text,
        position: integer,
        orchestrator: text,
        version: text,
        request: text,
        attributes: text,
        idempotencyKey: optional(text),
        requestHash: optional(text),
        status: text,
        failures: integer,
        turnIndex: optional(integer),
        reply: optional(text),
        error: optional(text),
        report: optional(text),
        cancelMode: optional(text),
        supersededBy: optional(text),
        waitSignal: optional(text),
        waitStep: optional(text),
        waitUntil: optional(integer),
        acceptedAt: integer,
        startedAt: optional(integer),
        settledAt: optional(integer),
        settledFence: optional(integer),
        dueAt: optional(integer),
      },
      indices: [
        { name: 'position', columns: ['sessionId', 'position'], unique: true },
        { name: 'key', columns: ['sessionId', 'idempotencyKey'], unique: true, where: '"idempotency_key" IS NOT NULL' },
        { name: 'open', columns: ['sessionId', 'position'], where: '"settled_at" IS NULL' },
      ],
    }),
    table<StepRow>(tablePrefix, 'step', {
      columns: {
        turnId: key(text),
        iteration: key(integer),
        intent: key(text),
        name: key(text),
        occurrence: key(integer),
        value: text,
      },
    }),
    table<SignalRow>(tablePrefix, 'signal', { columns: { turnId: key(text), name: key(text), payload: text } }),
    table<CheckpointRow>(tablePrefix, 'checkpoint', {
      columns: {
        orchestrator: key(text),
        sessionId: key(text),
        turnIndex: key(integer),
        turnId: optional(text),
        parent: optional(integer),
        state: text,
        lastRoute: text,
        signature: text,
        version: text,
        summarizedThrough: integer,
        savedAt: integer,
      },
      indices: [{ name: 'session', columns: ['sessionId'] }],
    }),
    table<MessageRow>(tablePrefix, 'message', {
      columns: {
        sessionId: key(text),
        position: key(integer),
        id: text,
        turnId: optional(text),
        orchestrator: optional(text),
        role: text,
        body: text,
        createdAt: integer,
      },
    }),
    table<DocumentRow>(tablePrefix, 'document', {
      columns: {
        namespace: key(text),
        scope: key(text),
        sessionId: key(text),
        key: key(text),
        value: text,
        version: integer,
        expiresAt: optional(integer),
      },
      indices: [
        { name: 'session', columns: ['sessionId'] },
        { name: 'expiry', columns: ['expiresAt'], where: '"expires_at" IS NOT NULL' },
      ],
    }),
    table<LeaseRow>(tablePrefix, 'lease', {
      columns: { name: key(text), holder: text, fence: integer, expiresAt: integer },
    }),
    table<TombstoneRow>(tablePrefix, 'tombstone', { columns: { sessionId: key(text), erasedAt: integer } }),
  ];
}

interface TableOptions<Row> {
  readonly columns: Record<keyof Row & string, EntitySchemaColumnOptions>;
  readonly indices?: readonly { name: string; columns: string[]; unique?: boolean; where?: string }[];
  readonly withoutRowid?: boolean;
}

/** Columns are named in snake case, indexes after their table. */
function table<Row>(
  prefix: string,
  name: string,
  { columns, indices = [], withoutRowid }: TableOptions<Row>,
): EntitySchema {
  const named = Object.entries<EntitySchemaColumnOptions>(columns).map(([property, column]) => [
    property,
    { ...column, name: snakeCase(property) },
  ]);
  return new EntitySchema({
    name: `${prefix}${name}`,
    tableName: `${prefix}${name}`,
    columns: Object.fromEntries(named) as Record<string, EntitySchemaColumnOptions>,
    indices: indices.map((index) => ({ ...index, name: `${prefix}${name}_${index.name}` })),
    ...(withoutRowid ? { withoutRowid } : {}),
  });
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
