import { type NewCheckpoint, type Checkpoint } from '../../ledger/checkpoint.js';
import { type NewMessage } from '../../ledger/conversation.store.js';
import { type ConversationMessage } from '../../ledger/message.js';
import { type Session, type SessionChange, type SessionState } from '../../ledger/session.js';
import { type StoredSignal } from '../../ledger/turn.store.js';
import { stepKeyOf, type StoredStep } from '../../ledger/turn-step.js';
import { type Lane } from '../../ledger/lane.js';
import { readRecord } from '../core/corrupt-records.js';
import { iso } from '../core/iso.js';
import { toLane, toMessage, toMessageFields, toNewMessage, toSession, toSessionRow } from '../core/row-mapping.js';
import { type LaneRow, type SessionRow } from '../core/rows.js';
import { type CancelMode, type TurnStatus } from '../../ledger/turn.js';

/** A hash as Redis returns it: alternating fields and values. Empty if the hash does not exist. */
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

/** The prefix of a session's metadata fields. Each metadata key has its own field. */
const META = 'm:';

/** The public view of a lane, as a script returns it. */
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

/** @param fields the fields of an existing session */
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
  // Avoids assignment, because a key may be named __proto__.
  return {
    ...toSession(rowOf(BLANK_SESSION, own, SESSION_NUMBERS)),
    metadata: Object.fromEntries(metadata),
  };
}

/** The result of a session change: the session's fields, its previous state, and whether it changed. */
export type StoredChange = readonly [session: Fields, previousState: SessionState, changed: number];

export function changeOf([session, previousState, changed]: StoredChange): SessionChange {
  return { session: sessionOf(session), previousState, changed: changed === 1 };
}

/** Returns the version of a session, or '' if it does not exist. */
export function versionOf(fields: Fields): string | number {
  return fields[placeOf('version', fields)] ?? '';
}

/** Returns the change that a touch at `lastActivityAt` makes to an active session. */
export function touched(fields: Fields, lastActivityAt: number): StoredChange {
  const after = [...fields];
  after[placeOf('lastActivityAt', fields)] = lastActivityAt;
  after[placeOf('version', fields)] = Number(versionOf(fields)) + 1;
  return [after, 'active', 1];
}

/** Returns the index of a field's value. */
function placeOf(field: string, fields: Fields): number {
  return fields.findIndex((name, index) => index % 2 === 0 && name === field) + 1 || fields.length;
}

/** Returns a session's fields except its id. Absent values are ''. */
export function sessionFields(session: Session): [field: string, value: string | number][] {
  const { id: _, metadata: __, ...row } = toSessionRow(session);
  return [
    ...Object.entries(row).map(([field, value]) => [field, value ?? ''] as [string, string | number]),
    ...metadataFields(session.metadata),
  ];
}

/** Returns metadata as fields. `null` becomes '', which removes the field. */
export function metadataFields(metadata: Readonly<Record<string, unknown>>): [field: string, value: string][] {
  return Object.entries(metadata).map(([key, value]) => [META + JSON.stringify(key), JSON.stringify(value)]);
}

/** Returns the part of a checkpoint that a script stores unchanged. */
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

type StoredMessage = ReturnType<typeof toMessageFields>;

/** Returns the part of a message that a script stores unchanged. */
export function messageText(message: NewMessage): string {
  return JSON.stringify(toMessageFields(message));
}

/** Separates messages to keep. JSON does not contain the character. */
const BETWEEN_MESSAGES = '\u001f';

export function keepText(messages: readonly NewMessage[]): string {
  return messages.map(messageText).join(BETWEEN_MESSAGES);
}

export function keptIn(text: string): NewMessage[] {
  return text.split(BETWEEN_MESSAGES).map((message) => toNewMessage(JSON.parse(message) as StoredMessage));
}

/** Returns consecutive messages of a log. @param first the position of the first message */
export function messagesOf(sessionId: string, stored: readonly string[], first: number): ConversationMessage[] {
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

/** Returns the last messages of a log, preceded by its first message if that is a system message. */
export function windowOf(sessionId: string, window: StoredWindow | null): ConversationMessage[] {
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

/** @param fields fields with names from a script; those that `blank` lacks are added */
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

/** Returns the first `lines` lines, then the rest as one string. */
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
