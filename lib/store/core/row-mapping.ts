import { type Checkpoint, type NewCheckpoint } from '../../ledger/checkpoint.js';
import { isPlainObject, type JsonObject, type JsonValue } from '../../common/json.js';
import { type Mutable } from '../../common/mutable.js';
import { type NewMessage } from '../../ledger/conversation.store.js';
import { type ConversationMessage, type MessageDraft } from '../../ledger/message.js';
import { type Session, SESSION_STATES } from '../../ledger/session.js';
import { type StateAddress, type StateBatch, type StateDocument } from '../../ledger/state.store.js';
import { type Lane, workerOf } from '../../ledger/lane.js';
import { type AcceptTurn, type StoredSignal } from '../../ledger/turn.store.js';
import { stepKeyOf, type StoredStep } from '../../ledger/turn-step.js';
import { type SpentTokens } from '../../ledger/turn-usage.js';
import { type Turn, TURN_STATUSES, type TurnErrorRecord, type TurnReply, type TurnRequest } from '../../ledger/turn.js';
import { assertField, readRecord, recordReader } from './corrupt-records.js';
import { iso } from './iso.js';
import {
  type CheckpointRow,
  type DocumentRow,
  type LaneViewRow,
  type MessageRow,
  type SessionRow,
  type SignalRow,
  type StepRow,
  type TurnRow,
} from './rows.js';

/** Maps rows to domain values: milliseconds to ISO times, JSON strings to values, null to absent properties; and back. */

const idOf = ({ id }: { readonly id: string }): string => id;

export const toSession = recordReader('session', readSession, idOf);

function readSession(row: SessionRow): Session {
  const surfaces = parse<unknown>(row.surfaces);
  const metadata = parse<unknown>(row.metadata);
  assertField(isStrings(surfaces), 'surfaces');
  assertField(isPlainObject(metadata), 'metadata');
  assertField((SESSION_STATES as readonly string[]).includes(row.state), 'state');
  assertField(Number.isSafeInteger(row.version), 'version');
  return {
    id: row.id,
    userId: row.userId,
    ...present('workspaceId', row.workspaceId),
    state: row.state,
    createdAt: iso(row.createdAt),
    lastActivityAt: iso(row.lastActivityAt),
    ...present('stateChangedAt', row.stateChangedAt, iso),
    attachedSurfaces: surfaces as string[],
    metadata: metadata as JsonObject,
    version: row.version,
  };
}

export function toSessionRow(session: Session): SessionRow {
  return {
    id: session.id,
    userId: session.userId,
    workspaceId: session.workspaceId ?? null,
    state: session.state,
    createdAt: Date.parse(session.createdAt),
    lastActivityAt: Date.parse(session.lastActivityAt),
    stateChangedAt: session.stateChangedAt === undefined ? null : Date.parse(session.stateChangedAt),
    surfaces: JSON.stringify(session.attachedSurfaces),
    metadata: JSON.stringify(session.metadata),
    version: session.version ?? 0,
  };
}

export const toTurn = recordReader('turn', readTurn, idOf);

function readTurn(row: TurnRow): Turn {
  const request = parse<unknown>(row.request);
  assertField(isPlainObject(request), 'request');
  assertField((TURN_STATUSES as readonly string[]).includes(row.status), 'status');
  // Set properties here and in readMessage, the records that are read most: spreading them costs far more.
  const turn: Mutable<Turn> = {
    id: row.id,
    sessionId: row.sessionId,
    position: row.position,
    orchestrator: row.orchestrator,
    version: row.version,
    request: request as TurnRequest,
    attributes: parse<JsonObject>(row.attributes),
    status: row.status,
    failures: row.failures,
    lost: row.lost,
    acceptedAt: iso(row.acceptedAt),
  };
  if (row.idempotencyKey !== null) turn.idempotencyKey = row.idempotencyKey;
  if (row.turnIndex !== null) turn.turnIndex = row.turnIndex;
  if (row.reply !== null) turn.reply = parse<TurnReply>(row.reply);
  if (row.error !== null) turn.error = parse<TurnErrorRecord>(row.error);
  if (row.report !== null) turn.report = parse<JsonObject>(row.report);
  if (row.spent !== null) turn.usage = parse<SpentTokens>(row.spent);
  if (row.cancelMode !== null) turn.cancelMode = row.cancelMode;
  if (row.keep !== null) turn.keep = parse<MessageFields[]>(row.keep).map(toNewMessage);
  if (row.supersededBy !== null) turn.supersededBy = row.supersededBy;
  if (row.waitSignal !== null) turn.waitingFor = waitingFor(row.waitSignal, row.waitUntil, row.waitOthers);
  if (row.startedAt !== null) turn.startedAt = iso(row.startedAt);
  if (row.settledAt !== null) turn.settledAt = iso(row.settledAt);
  if (row.dueAt !== null) turn.dueAt = iso(row.dueAt);
  return turn;
}

/** Returns the columns that are set when a turn is accepted. */
export function toAcceptedRow(request: AcceptTurn): AcceptedRow {
  const { id, sessionId, orchestrator, version, idempotency } = request;
  return {
    id,
    sessionId,
    orchestrator,
    version,
    request: JSON.stringify(request.request),
    attributes: JSON.stringify(request.attributes),
    idempotencyKey: idempotency?.key ?? null,
    requestHash: idempotency?.hash ?? null,
  };
}

type AcceptedRow = Pick<
  TurnRow,
  'id' | 'sessionId' | 'orchestrator' | 'version' | 'request' | 'attributes' | 'idempotencyKey' | 'requestHash'
>;

export function toLane(row: LaneViewRow): Lane {
  const { sessionId, turnId, status } = row;
  const mode = row.mode ?? 'open';
  if (turnId === null) return { sessionId, mode, queued: 0 };
  // All turns behind the head are queued.
  const isQueued = status === 'queued';
  return {
    sessionId,
    mode,
    queued: row.depth - (isQueued ? 0 : 1),
    ...present('queuedSince', isQueued ? row.acceptedAt : row.nextAcceptedAt, iso),
    head: {
      id: turnId,
      orchestrator: row.orchestrator ?? '',
      status: status ?? 'queued',
      failures: row.failures ?? 0,
      lost: row.lost ?? 0,
      ...present('cancelMode', row.cancelMode),
      ...present('waitingFor', row.waitSignal, (signal) => waitingFor(signal, row.waitUntil)),
      acceptedAt: iso(row.acceptedAt ?? 0),
      ...present('startedAt', row.startedAt, iso),
      ...present('dueAt', row.dueAt, iso),
      ...present('worker', row.holder, workerOf),
      ...present('leaseUntil', row.leaseUntil, iso),
    },
  };
}

export function toStep({ stepKey, value }: StepRow): StoredStep {
  return readRecord('step', stepKey, () => ({ ...stepKeyOf(stepKey), value: parse(value) }));
}

export function toSignal({ name, payload }: SignalRow): StoredSignal {
  return readRecord('signal', name, () => {
    return { name, payload: JSON.parse(payload) as JsonValue };
  });
}

export const toCheckpoint = recordReader(
  'checkpoint',
  readCheckpoint,
  (row) => `${row.orchestrator}/${row.sessionId}/${row.turnIndex}`,
);

function readCheckpoint(row: CheckpointRow): Checkpoint {
  return {
    orchestrator: row.orchestrator,
    sessionId: row.sessionId,
    turnIndex: row.turnIndex,
    state: parse<JsonObject>(row.state),
    lastRoute: parse<string[]>(row.lastRoute),
    signature: row.signature,
    version: row.version,
    summarizedThrough: row.summarizedThrough,
    savedAt: iso(row.savedAt),
    ...present('turnId', row.turnId),
    ...present('parent', row.parent),
    ...(row.extras === null
      ? {}
      : parse<Pick<Checkpoint, 'intents' | 'log' | 'undone' | 'documents' | 'replaces'>>(row.extras)),
  };
}

/** Returns the optional fields of a checkpoint, as their column stores them. */
export function extrasOf({ intents, log, undone, documents, replaces }: NewCheckpoint): string | null {
  const extras = JSON.stringify({ intents, log, undone, documents, replaces });
  return extras === '{}' ? null : extras;
}

export const toMessage = recordReader('message', readMessage, idOf);

function readMessage(row: MessageRow): ConversationMessage {
  const { content, name, metadata, toolCalls, toolCallId } = parse<Omit<MessageDraft, 'id' | 'role'>>(row.body);
  const message: Mutable<ConversationMessage> = {
    id: row.id,
    position: row.position,
    role: row.role,
    content,
    createdAt: iso(row.createdAt),
  };
  if (name !== undefined) message.name = name;
  if (metadata !== undefined) message.metadata = metadata;
  if (toolCalls !== undefined) message.toolCalls = toolCalls;
  if (toolCallId !== undefined) message.toolCallId = toolCallId;
  if (row.orchestrator !== null) message.orchestrator = row.orchestrator;
  if (row.turnId !== null) message.turnId = row.turnId;
  return message;
}

export function toMessageRow(
  message: NewMessage,
  place: Pick<MessageRow, 'sessionId' | 'position' | 'createdAt' | 'turnId' | 'orchestrator'>,
): MessageRow {
  const { id, role, body } = toMessageFields(message);
  const { sessionId, position, createdAt, turnId, orchestrator } = place;
  return { sessionId, position, createdAt, turnId, orchestrator, id, role, body };
}

export const toDocument = recordReader('document', readDocument, ({ key = '' }) => key);

function readDocument(row: Omit<DocumentRow, keyof StateAddress> & { readonly key?: string }): StateDocument {
  return {
    value: parse<JsonValue>(row.value),
    batches: parse<StateBatch[]>(row.batches),
    version: row.version,
    createdAt: iso(row.createdAt),
    accessedAt: iso(row.accessedAt),
    ...present('expiresAt', row.expiresAt, iso),
  };
}

type WaitingFor = NonNullable<Turn['waitingFor']>;

function waitingFor(signal: string, until: number | null, others: string | null = null): WaitingFor {
  const also = others === null ? {} : { others: parse<string[]>(others) };
  return until === null ? { signal, ...also } : { signal, ...also, until: iso(until) };
}

/** A message without the values that the store adds when it appends it. Its body is JSON. */
type MessageFields = Pick<NewMessage, 'id' | 'role' | 'orchestrator'> & { readonly body: string };

export function toMessageFields({ id, role, orchestrator, ...rest }: NewMessage): MessageFields {
  const { content, name, metadata, toolCalls, toolCallId } = rest;
  return { id, role, orchestrator, body: JSON.stringify({ content, name, metadata, toolCalls, toolCallId }) };
}

/** Returns messages to keep, as their column stores them. */
export function keepText(messages: readonly NewMessage[] = []): string | null {
  return messages.length > 0 ? JSON.stringify(messages.map(toMessageFields)) : null;
}

export function toNewMessage({ body, ...fields }: MessageFields): NewMessage {
  return { ...parse<Pick<NewMessage, 'content'>>(body), ...fields };
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function parse<T>(text: string): T {
  return JSON.parse(text) as T;
}

/** Returns an object with the property, or an empty object if the column is null. */
function present<Key extends string, Value>(key: Key, column: Value | null): Partial<Record<Key, Value>>;
function present<Key extends string, Column, Value>(
  key: Key,
  column: Column | null,
  map: (column: Column) => Value,
): Partial<Record<Key, Value>>;
function present(key: string, column: unknown, map = (value: unknown) => value): Record<string, unknown> {
  return column === null ? {} : { [key]: map(column) };
}
