import { type NewCheckpoint, type Checkpoint } from '../../ledger/checkpoint.js';
import { type NewMessage } from '../../ledger/conversation.store.js';
import { type Message } from '../../ledger/message.js';
import { type Session, type SessionChange, type SessionState } from '../../ledger/session.js';
import { type StoredSignal } from '../../ledger/turn.store.js';
import { stepKeyOf, type StoredStep } from '../../ledger/turn-step.js';
import { type Lane } from '../../ledger/lane.js';
import { readRecord } from '../core/corrupt-records.js';
import { iso } from '../core/iso.js';
import { toLane, toMessage, toSession, toSessionRow } from '../core/row-mapping.js';
import { type LaneRow, type SessionRow } from '../core/rows.js';
import { type CancelMode, type TurnStatus } from '../../ledger/turn.js';

/** A hash as Redis gives it: fields and values by turns; empty when there is none. */
export type Fields = readonly (string | number)[];

const BLANK_SESSION: SessionRow = {
  id: '',
  userId: '',
  workspaceId: null,
  state: 'created',
  createdAt: 0,
  lastActivityAt: 0,
  stateChangedAt: null,
  surfaces: '[]',
  metadata: '{}',
  version: 0,
};

const SESSION_NUMBERS: ReadonlySet<string> = new Set([
  'createdAt',
  'lastActivityAt',
  'stateChangedAt',
  'version',
] satisfies (keyof SessionRow)[]);

/** Begins the fields of a session that hold its metadata, one a key. */
const META = 'm:';

/** What is shown of a lane, as a script gives it. */
export type StoredLaneView = readonly [
  sessionId: string,
  lane: readonly [mode: LaneRow['mode'], holder: string | null, leaseUntil: string | null],
  depth: number,
  head: readonly (string | null)[] | null,
  nextAcceptedAt: string | null,
];

export function laneOf([sessionId, [mode, holder, leaseUntil], depth, head, nextAcceptedAt]: StoredLaneView): Lane {
  const [turnId, orchestrator, status, failures, lost, cancelMode, waitSignal, waitUntil, ...times] = head ?? [];
  const [acceptedAt, startedAt, dueAt] = times;
  return toLane({
    sessionId,
    mode,
    depth,
    holder,
    leaseUntil: number(leaseUntil),
    turnId: turnId ?? null,
    orchestrator: orchestrator ?? null,
    status: (status ?? null) as TurnStatus | null,
    failures: number(failures),
    lost: number(lost),
    cancelMode: (cancelMode ?? null) as CancelMode | null,
    waitSignal: waitSignal ?? null,
    waitUntil: number(waitUntil),
    acceptedAt: number(acceptedAt),
    startedAt: number(startedAt),
    dueAt: number(dueAt),
    nextAcceptedAt: number(nextAcceptedAt),
  });
}

function number(text: string | null | undefined): number | null {
  return text === null || text === undefined ? null : Number(text);
}

/** @param fields of a session that is there */
export function sessionOf(fields: Fields): Session {
  return readRecord('session', String(fields[placeOf('id', fields)] ?? ''), () => readSession(fields));
}

function readSession(fields: Fields): Session {
  const own: (string | number)[] = [];
  const metadata: [string, unknown][] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const [field, value] = [String(fields[i]), fields[i + 1]];
    if (field.startsWith(META))
      metadata.push([JSON.parse(field.slice(META.length)) as string, JSON.parse(String(value))]);
    else own.push(field, value);
  }
  // Not by assignment: a key may be named __proto__.
  return {
    ...toSession(rowOf(BLANK_SESSION, own, SESSION_NUMBERS)),
    metadata: Object.fromEntries(metadata),
  };
}

/** What became of a session: its fields, its state before, and whether it changed. */
export type StoredChange = readonly [session: Fields, previousState: SessionState, changed: number];

export function changeOf([session, previousState, changed]: StoredChange): SessionChange {
  return { session: sessionOf(session), previousState, changed: changed === 1 };
}

/** Of a session; '' for none. */
export function versionOf(fields: Fields): string | number {
  return fields[placeOf('version', fields)] ?? '';
}

/** What a touch at that time has made of an active session. */
export function touched(fields: Fields, lastActivityAt: number): StoredChange {
  const after = [...fields];
  after[placeOf('lastActivityAt', fields)] = lastActivityAt;
  after[placeOf('version', fields)] = Number(versionOf(fields)) + 1;
  return [after, 'active', 1];
}

/** Where the value of a field is. */
function placeOf(field: string, fields: Fields): number {
  return fields.findIndex((name, index) => index % 2 === 0 && name === field) + 1 || fields.length;
}

/** A session's fields but for its id; what it does not have is ''. */
export function sessionFields(session: Session): [field: string, value: string | number][] {
  const { id: _, metadata: __, ...row } = toSessionRow(session);
  return [
    ...Object.entries(row).map(([field, value]) => [field, value ?? ''] as [string, string | number]),
    ...metadataFields(session.metadata),
  ];
}

/** Metadata as fields; `null` is '', which takes a field away. */
export function metadataFields(metadata: Readonly<Record<string, unknown>>): [field: string, value: string][] {
  return Object.entries(metadata).map(([key, value]) => [META + JSON.stringify(key), JSON.stringify(value)]);
}

/** What a script stores of a checkpoint as it is. */
export function checkpointText({ orchestrator: _, sessionId: __, ...rest }: NewCheckpoint): string {
  return JSON.stringify(rest);
}

export type StoredCheckpoint = readonly [savedAt: string | number, text: string];

export function checkpointOf(orchestrator: string, sessionId: string, [savedAt, text]: StoredCheckpoint): Checkpoint {
  return readRecord('checkpoint', `${orchestrator}/${sessionId}`, () => {
    const rest = JSON.parse(text) as Omit<NewCheckpoint, 'orchestrator' | 'sessionId'>;
    return { orchestrator, sessionId, ...rest, savedAt: iso(Number(savedAt)) };
  });
}

type StoredMessage = Pick<NewMessage, 'id' | 'role' | 'orchestrator'> & { readonly body: string };

/** What a script stores of a message as it is. */
export function messageText({ id, role, orchestrator, ...rest }: NewMessage): string {
  const { content, name, metadata, toolCalls, toolCallId } = rest;
  const body = JSON.stringify({ content, name, metadata, toolCalls, toolCallId });
  return JSON.stringify({ id, role, body, orchestrator });
}

/** Messages as they stand in the log one after the other. @param first the position of the first one */
export function messagesOf(sessionId: string, stored: readonly string[], first: number): Message[] {
  return stored.map((element, index) => {
    const [createdAt, turnId, writer, text] = split(element, 3);
    const {
      id,
      role,
      body,
      orchestrator = writer,
    } = readRecord('message', `${sessionId}/${first + index}`, () => JSON.parse(text) as StoredMessage);
    return toMessage({
      sessionId,
      position: first + index,
      id,
      role,
      body,
      createdAt: Number(createdAt),
      turnId: turnId === '' ? null : turnId,
      orchestrator: orchestrator || null,
    });
  });
}

/** The last messages of a log, led by its first one when that is a system message. */
export function windowOf(sessionId: string, window: StoredWindow | null): Message[] {
  if (window === null) return [];
  const [last, recent, first] = window;
  const messages = messagesOf(sessionId, recent, last - recent.length + 1);
  if (first === null) return messages;
  const [leader] = messagesOf(sessionId, [first], 1);
  return leader.role === 'system' ? [leader, ...messages] : messages;
}

export type StoredWindow = readonly [last: number, recent: readonly string[], first: string | null];

export function stepsOf(fields: Fields): StoredStep[] {
  return entries(fields, new Set()).map(([field, value]) => ({
    ...stepKeyOf(field),
    value: JSON.parse(String(value)) as StoredStep['value'],
  }));
}

export function signalsOf(fields: Fields): StoredSignal[] {
  return entries(fields, new Set()).map(([name, payload]) => ({
    name,
    payload: JSON.parse(String(payload)) as StoredSignal['payload'],
  }));
}

/** @param fields that a script named: whatever is not in `blank` is added */
function rowOf<Row extends object>(blank: Row, fields: Fields, numbers: ReadonlySet<string>): Row {
  const row = { ...blank } as Record<string, unknown>;
  for (let i = 0; i < fields.length; i += 2) {
    const field = fields[i];
    row[field] = numbers.has(field as string) ? Number(fields[i + 1]) : fields[i + 1];
  }
  return row as Row;
}

export function entries(fields: Fields, numbers: ReadonlySet<string>): [field: string, value: string | number][] {
  const pairs: [string, string | number][] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const field = String(fields[i]);
    pairs.push([field, numbers.has(field) ? Number(fields[i + 1]) : fields[i + 1]]);
  }
  return pairs;
}

/** The first lines, and all that comes after them. */
export function split(stored: string, lines: number): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let line = 0; line < lines; line += 1) {
    const end = stored.indexOf('\n', from);
    parts.push(stored.slice(from, end));
    from = end + 1;
  }
  return [...parts, stored.slice(from)];
}
