import { type Mutable } from '../../common/mutable.js';
import { type AcceptTurn, type TurnSettlement } from '../../ledger/turn.store.js';
import { type CancelMode, type Turn, TURN_STATUSES, type TurnErrorRecord, type TurnStatus } from '../../ledger/turn.js';
import { type SpentTokens } from '../../ledger/turn-usage.js';
import { interruptedMessages } from '../../ledger/user-message.js';
import { assertField, readRecord } from '../core/corrupt-records.js';
import { iso } from '../core/iso.js';
import { type Fields, keptIn, messageText, split } from './redis-rows.js';

/**
 * The row of a turn. `accepted` holds the immutable part as one string, of which scripts parse only the first lines.
 * `outcome` holds the result as another string. Each mutable value has its own field.
 */
export interface TurnFields {
  readonly id: string;
  /** The time, the position and the session id, a line each, then {@link Acceptance} as JSON. */
  readonly accepted: string;
  readonly orchestrator: string;
  readonly status: TurnStatus;
  readonly idempotencyKey?: string;
  readonly failures?: string | number;
  readonly lost?: string | number;
  /** The attempts lost since a step was stored. */
  readonly lostSinceStep?: string | number;
  /** {@link Outcome} as JSON. */
  readonly outcome?: string;
  readonly error?: string;
  /** The tokens that models used, as JSON. */
  readonly spent?: string;
  readonly cancelMode?: CancelMode;
  /** The messages that stay when the turn is cancelled, see {@link keepText}. */
  readonly keep?: string;
  readonly supersededBy?: string;
  readonly waitSignal?: string;
  /** The other signals that the turn waits for, as JSON. */
  readonly waitOthers?: string;
  readonly waitUntil?: string | number;
  readonly startedAt?: string | number;
  readonly settledAt?: string | number;
  readonly dueAt?: string | number;
}

type Acceptance = Pick<Turn, 'version' | 'request' | 'attributes'>;
type Outcome = Pick<Turn, 'turnIndex' | 'reply' | 'report'>;

/** Returns what a script stores for a new turn: the acceptance without its time and position, and the user's message. */
export function acceptedTexts(request: AcceptTurn): [accepted: string, userMessage: string] {
  const { sessionId, version, attributes } = request;
  const acceptance: Acceptance = { version, request: request.request, attributes };
  const userMessage = interruptedMessages(request).map(messageText).join('');
  return [`${sessionId}\n${JSON.stringify(acceptance)}`, userMessage];
}

/** Returns the row of a turn that was just accepted. */
export function acceptedRow(request: AcceptTurn, stored: string, position: number, now: number): TurnFields {
  const { id, orchestrator, idempotency } = request;
  const accepted = `${now}\n${position}\n${stored}`;
  return { id, orchestrator, status: 'queued', accepted, idempotencyKey: idempotency?.key };
}

/** Returns the part of a settlement that a script stores unchanged. */
export function outcomeText({ checkpoint, reply, report }: TurnSettlement): string {
  const outcome: Outcome = { turnIndex: checkpoint?.turnIndex, reply, report };
  return JSON.stringify(outcome);
}

/** Returns the row of a settled turn, from its row at the time of the claim. */
export function settledRow(
  claimed: TurnFields,
  { status, error, usage }: TurnSettlement,
  outcome: string,
  now: number,
): TurnFields {
  return {
    ...claimed,
    status,
    outcome,
    failures: Number(claimed.failures ?? 0) + (status === 'failed' ? 1 : 0),
    error: JSON.stringify(error),
    spent: usage ? JSON.stringify(usage) : claimed.spent,
    cancelMode: undefined,
    keep: undefined,
    settledAt: now,
  };
}

export function turnRow(fields: Fields): TurnFields {
  const row: Record<string, unknown> = {};
  for (let i = 0; i < fields.length; i += 2) row[fields[i]] = fields[i + 1];
  return row as unknown as TurnFields;
}

export function turnOf(fields: Fields): Turn {
  return turnFrom(turnRow(fields));
}

export function turnFrom(row: TurnFields): Turn {
  return readRecord('turn', row.id, () => readTurn(row));
}

function readTurn(row: TurnFields): Turn {
  const [acceptedAt, position, sessionId, text] = split(row.accepted, 3);
  const { version, request, attributes } = JSON.parse(text) as Acceptance;
  assertField((TURN_STATUSES as readonly string[]).includes(row.status), 'status');
  const turn: Mutable<Turn> = {
    id: row.id,
    sessionId,
    position: Number(position),
    orchestrator: row.orchestrator,
    version,
    request,
    attributes,
    status: row.status,
    failures: Number(row.failures ?? 0),
    lost: Number(row.lost ?? 0),
    acceptedAt: iso(Number(acceptedAt)),
  };
  if (row.idempotencyKey !== undefined) turn.idempotencyKey = row.idempotencyKey;
  if (row.outcome !== undefined) Object.assign(turn, JSON.parse(row.outcome) as Outcome);
  if (row.error !== undefined) turn.error = JSON.parse(row.error) as TurnErrorRecord;
  if (row.spent !== undefined) turn.usage = JSON.parse(row.spent) as SpentTokens;
  if (row.cancelMode !== undefined) turn.cancelMode = row.cancelMode;
  if (row.keep !== undefined) turn.keep = keptIn(row.keep);
  if (row.supersededBy !== undefined) turn.supersededBy = row.supersededBy;
  if (row.waitSignal !== undefined) turn.waitingFor = waitingFor(row.waitSignal, row.waitUntil, row.waitOthers);
  if (row.startedAt !== undefined) turn.startedAt = iso(Number(row.startedAt));
  if (row.settledAt !== undefined) turn.settledAt = iso(Number(row.settledAt));
  if (row.dueAt !== undefined) turn.dueAt = iso(Number(row.dueAt));
  return turn;
}

type WaitingFor = NonNullable<Turn['waitingFor']>;

function waitingFor(signal: string, until: string | number | undefined, others: string | undefined): WaitingFor {
  const also = others === undefined ? {} : { others: JSON.parse(others) as string[] };
  return until === undefined ? { signal, ...also } : { signal, ...also, until: iso(Number(until)) };
}
