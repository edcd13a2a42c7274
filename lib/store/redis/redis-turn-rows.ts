import { type Mutable } from '../../common/mutable.js';
import { type AcceptTurn, type TurnSettlement } from '../../ledger/turn.store.js';
import { type CancelMode, type Turn, TURN_STATUSES, type TurnErrorRecord, type TurnStatus } from '../../ledger/turn.js';
import { type SpentTokens } from '../../ledger/turn-usage.js';
import { interruptedMessages } from '../../ledger/user-message.js';
import { assertField, readRecord } from '../core/corrupt-records.js';
import { iso } from '../core/iso.js';
import { type Fields, messageText, split } from './redis-rows.js';

/**
 * A turn's row holds what never changes as one text that scripts do not take apart but for its first lines, and what came of it as
 * another one; between them what changes, a field each.
 */
export interface TurnFields {
  readonly id: string;
  /** When, position and session, a line each, then {@link Acceptance}. */
  readonly accepted: string;
  readonly orchestrator: string;
  readonly status: TurnStatus;
  readonly idempotencyKey?: string;
  readonly failures?: string | number;
  readonly lost?: string | number;
  /** {@link Outcome}. */
  readonly outcome?: string;
  readonly error?: string;
  /** JSON: the tokens that models took. */
  readonly spent?: string;
  readonly cancelMode?: CancelMode;
  readonly supersededBy?: string;
  readonly waitSignal?: string;
  readonly waitUntil?: string | number;
  readonly startedAt?: string | number;
  readonly settledAt?: string | number;
  readonly dueAt?: string | number;
}

type Acceptance = Pick<Turn, 'version' | 'request' | 'attributes'>;
type Outcome = Pick<Turn, 'turnIndex' | 'reply' | 'report'>;

/** What a script stores of a new turn: of the acceptance all but the time and the position, and what the user said. */
export function acceptedTexts(request: AcceptTurn): [accepted: string, userMessage: string] {
  const { sessionId, version, attributes } = request;
  const acceptance: Acceptance = { version, request: request.request, attributes };
  const said = interruptedMessages(request).map(messageText).join('');
  return [`${sessionId}\n${JSON.stringify(acceptance)}`, said];
}

/** The row of a turn that was just accepted. */
export function acceptedRow(request: AcceptTurn, stored: string, position: number, now: number): TurnFields {
  const { id, orchestrator, idempotency } = request;
  const accepted = `${now}\n${position}\n${stored}`;
  return { id, orchestrator, status: 'queued', accepted, idempotencyKey: idempotency?.key };
}

/** What a script stores of a settlement as it is. */
export function outcomeText({ checkpoint, reply, report }: TurnSettlement): string {
  const outcome: Outcome = { turnIndex: checkpoint?.turnIndex, reply, report };
  return JSON.stringify(outcome);
}

/** What a settlement has made of the row of a turn that it found as it was claimed. */
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
  if (row.supersededBy !== undefined) turn.supersededBy = row.supersededBy;
  if (row.waitSignal !== undefined) turn.waitingFor = waitingFor(row.waitSignal, row.waitUntil);
  if (row.startedAt !== undefined) turn.startedAt = iso(Number(row.startedAt));
  if (row.settledAt !== undefined) turn.settledAt = iso(Number(row.settledAt));
  if (row.dueAt !== undefined) turn.dueAt = iso(Number(row.dueAt));
  return turn;
}

function waitingFor(signal: string, until: string | number | undefined): Turn['waitingFor'] {
  return until === undefined ? { signal } : { signal, until: iso(Number(until)) };
}
