import { type NewMessage } from '../../ledger/conversation.store.js';
import { type JsonValue } from '../../common/json.js';
import { type SessionChange, type SessionState } from '../../ledger/session.js';
import { type StateChange } from '../../ledger/state.store.js';
import { type Lane, type LaneMode, type LanePage, type LaneQuery } from '../../ledger/lane.js';
import {
  type AcceptedTurn,
  type AcceptTurn,
  type AwaitedTurn,
  type ChangedLane,
  type ClaimedTurn,
  type ClaimRequest,
  type LaneControl,
  type RenewedLease,
  type SettledTurn,
  type SignalledTurn,
  type StoredSignal,
  type TurnFailure,
  type TurnHold,
  type TurnLedger,
  type TurnQuery,
  type TurnSettlement,
  type TurnWait,
} from '../../ledger/turn.store.js';
import { type StoredStep } from '../../ledger/turn-step.js';
import { type TurnSpending } from '../../ledger/turn-usage.js';
import { type CancelMode, type Turn } from '../../ledger/turn.js';
import { writtenNamespaces } from '../../ledger/namespaces.js';
import { awaitedBy, toAwaited } from '../core/awaited.js';
import { epochsOf } from '../core/epochs.js';
import { ALL_LANES } from '../core/lane.js';
import {
  keepText,
  toAcceptedRow,
  toCheckpoint,
  toLane,
  toMessage,
  toMessageFields,
  toSignal,
  toStep,
  toTurn,
} from '../core/row-mapping.js';
import {
  type CheckpointRow,
  type LaneRow,
  type LaneViewRow,
  type MessageRow,
  type SignalRow,
  type StepRow,
  type TurnRow,
} from '../core/rows.js';
import { readableList, readAll } from '../core/corrupt-records.js';
import { selectionOf } from '../core/turn-selection.js';
import { positionsOf } from '../sql/turn-positions.js';
import { type PostgresDatabase } from './postgres-database.js';
import { appendArgs, requiredSession, type SqlDocument, toDocumentFromSql } from './postgres-documents.js';
import { toSessionFromSql } from './postgres-metadata.js';
import { type LaneArgs, type PostgresLaneCalls } from './postgres-lane-calls.js';
import { granted } from './postgres-refusals.js';
import { type SqlRow, toCheckpointArgs, toColumns, toRow, toStepArgs } from './postgres-rows.js';

interface ChangedTurn {
  readonly turn: SqlRow;
}

interface Claimed {
  readonly fence: number;
  readonly turn: SqlRow;
  readonly session: SqlRow | null;
  readonly checkpoint: SqlRow | null;
  readonly history: readonly SqlRow[];
  readonly steps: readonly SqlRow[];
  readonly documents: readonly (SqlDocument | null)[];
  readonly epochs: string | null;
}

interface HeadClaim {
  readonly claimed: Claimed | null;
  readonly lost: SqlRow | null;
  readonly lost_by: string;
  readonly suspect: boolean;
}

interface Accepted extends ChangedTurn {
  readonly duplicate: boolean;
  readonly notify: boolean;
  readonly claimed: Claimed | null;
}

interface Settled {
  readonly turn: SqlRow;
  readonly next: Claimed | null;
  readonly notify: boolean;
  readonly session_change: {
    readonly session: SqlRow;
    readonly previous_state: SessionState;
    readonly changed: boolean;
  } | null;
}

/** Stores the turn ledger in PostgreSQL. Each operation is one function call, see the migrations `turn-*.sql`. */
export class PostgresTurns implements TurnLedger {
  /** @param changed notified of turns that this process ended or asked to stop, even if LISTEN fails */
  constructor(
    private readonly db: PostgresDatabase,
    private readonly laneCalls: PostgresLaneCalls,
    private readonly changed: (turnId: string, turn?: Turn) => void,
  ) {}

  async accept(request: AcceptTurn): Promise<AcceptedTurn> {
    const { requireSession } = request;
    const { turn, duplicate, notify, claimed } = await this.inLane<Accepted>('accept_v1', {
      ...toColumns(toAcceptedRow(request)),
      session_id: request.sessionId,
      ttl_ms: request.idempotency?.ttlMs,
      when_busy: request.whenBusy,
      max_queued: request.maxQueued,
      max_lifetime_ms: request.maxSessionLifetimeMs,
      foreign_session: request.foreignSession ?? false,
      require_session: requireSession && requiredSession({ requireSession }),
      claim: request.claim && claimArgs(request.claim),
    });
    return { turn: turnOf(turn), duplicate, notify, ...(claimed ? { claimed: toClaimedTurn(claimed) } : {}) };
  }

  async claim(sessionId: string, request: ClaimRequest): Promise<ClaimedTurn | null> {
    const args = { session_id: sessionId, request: claimArgs(request) };
    const { claimed, lost, lost_by: holder, suspect } = await this.inLane<HeadClaim>('claim_v1', args);
    const given = claimed && toClaimedTurn(claimed);
    if (lost)
      request.onNotice?.({
        type: 'lost',
        turn: given?.turn.id === lost.id ? given.turn : turnOf(lost),
        lostSinceStep: Number(lost.lost_since_step),
        holder,
      });
    if (suspect) request.onNotice?.({ type: 'suspect' });
    return given;
  }

  async renew(hold: TurnHold, leaseMs: number): Promise<RenewedLease> {
    const args = { ...holdArgs(hold), lease_ms: leaseMs };
    const { cancel_mode: cancelMode } = await this.inLane<{ cancel_mode: CancelMode | null }>('renew_v1', args);
    return cancelMode === null ? {} : { cancelMode };
  }

  async settle(hold: TurnHold, settlement: TurnSettlement, next?: ClaimRequest): Promise<SettledTurn> {
    const {
      status,
      reply,
      error,
      report,
      usage,
      messages,
      checkpoint,
      keepCheckpoints,
      sessionTtlMs,
      stateChanges = [],
    } = settlement;
    const settled = await this.inLane<Settled>('settle_v1', {
      ...holdArgs(hold),
      status,
      reply: JSON.stringify(reply),
      error: JSON.stringify(error),
      report: JSON.stringify(report),
      usage: JSON.stringify(usage),
      messages: messages.map(toMessageFields),
      checkpoint: checkpoint && toCheckpointArgs(checkpoint),
      keep: keepCheckpoints === 'all' ? undefined : keepCheckpoints,
      state_changes: changesArgs(hold.sessionId, stateChanges),
      namespaces: writtenNamespaces(settlement),
      session_ttl_ms: sessionTtlMs,
      next: next && claimArgs(next),
    });
    const turn = turnOf(settled.turn);
    this.changed(turn.id, turn);
    const sessionChange = toSessionChange(settled.session_change);
    return {
      turn,
      ...(sessionChange ? { sessionChange } : {}),
      next: settled.next && toClaimedTurn(settled.next),
      notify: settled.notify,
    };
  }

  retry(hold: TurnHold, { error, delayMs, spending }: TurnFailure): Promise<Turn> {
    const args = { error: JSON.stringify(error), delay_ms: delayMs };
    return this.change('retry_v1', { ...holdArgs(hold), ...args, ...spendingArgs(hold, spending) });
  }

  release(hold: TurnHold, delayMs: number, spending?: TurnSpending): Promise<Turn> {
    return this.change('release_v1', { ...holdArgs(hold), delay_ms: delayMs, ...spendingArgs(hold, spending) });
  }

  async wait(
    hold: TurnHold,
    { signal, step, others = [], timeoutMs, spending }: TurnWait,
  ): Promise<{ turn: Turn; received?: { payload: JsonValue } }> {
    const { turn, payload } = await this.inLane<ChangedTurn & { payload?: string }>('wait_v1', {
      ...holdArgs(hold),
      signal,
      step: JSON.stringify(toStepArgs(step)),
      ...(others.length > 0 ? { others: JSON.stringify(others) } : {}),
      timeout_ms: timeoutMs,
      ...spendingArgs(hold, spending),
    });
    if (payload === undefined) return { turn: turnOf(turn) };
    return { turn: turnOf(turn), received: { payload: JSON.parse(payload) as JsonValue } };
  }

  async saveAwaited(hold: TurnHold, turns: readonly AwaitedTurn[]): Promise<void> {
    await this.inLane('save_awaited_v1', { ...holdArgs(hold), awaited: toAwaited(hold, turns) });
  }

  async awaited(sessionId: string): Promise<readonly AwaitedTurn[]> {
    const sql = 'SELECT row_to_json(lane) AS row FROM {lane} AS lane WHERE session_id = $1';
    const [found] = await this.db.query<{ row: SqlRow } | undefined>(sql, [sessionId]);
    return awaitedBy(found && toRow<LaneRow>(found.row));
  }

  async signal(turnId: string, name: string, payload: JsonValue): Promise<SignalledTurn> {
    const args = { turn_id: turnId, name, payload: JSON.stringify(payload) };
    const { turn, ...signalled } = await this.call<ChangedTurn & Omit<SignalledTurn, 'turn'>>('signal_v1', args);
    return { turn: turnOf(turn), ...signalled };
  }

  async cancel(turnId: string, mode: CancelMode, keep: readonly NewMessage[] = []): Promise<ChangedLane> {
    const args = { turn_id: turnId, mode, keep: keepText(keep) };
    const { turn: row, notify } = await this.call<ChangedTurn & { notify: boolean }>('cancel_v1', args);
    const turn = turnOf(row);
    this.changed(turn.id, turn);
    return { turn, notify };
  }

  async saveStep(hold: TurnHold, step: StoredStep, spending?: TurnSpending): Promise<StoredStep> {
    const args = {
      ...holdArgs(hold),
      step: toStepArgs(step),
      value: JSON.stringify(step.value),
      ...spendingArgs(hold, spending),
    };
    const stored = await this.inLane<{ value: string }>('save_step_v1', args);
    return { ...step, value: JSON.parse(stored.value) as JsonValue };
  }

  async get(turnId: string): Promise<Turn | null> {
    const [found] = await this.db.query<ChangedTurn | undefined>(
      'SELECT row_to_json(turn) AS turn FROM {turn} AS turn WHERE id = $1',
      [turnId],
    );
    return found ? turnOf(found.turn) : null;
  }

  async list({ limit = 50, ...query }: TurnQuery): Promise<Turn[]> {
    const selection = selectionOf(query);
    const { sessionId, statuses, after } = selection;
    const { condition, order } = positionsOf(selection, '$2');
    const filter = `${statuses === null ? '' : 'AND status = ANY($4)'} ${selection.isOpen ? 'AND settled_at IS NULL' : ''}`;
    const sql = `SELECT row_to_json(turn) AS turn FROM {turn} AS turn
       WHERE session_id = $1 AND ${condition} ${filter} ${order} LIMIT $3`;
    return readableList(limit, async (most) => {
      const values = [sessionId, after, most, ...(statuses === null ? [] : [statuses])];
      return readAll(await this.db.query<ChangedTurn>(sql, values), ({ turn }) => turnOf(turn));
    });
  }

  async steps(turnId: string): Promise<StoredStep[]> {
    const sql = 'SELECT row_to_json(step) AS row FROM {step} AS step WHERE turn_id = $1';
    const rows = await this.db.query<{ row: SqlRow }>(sql, [turnId]);
    return rows.map(({ row }) => toStep(toRow<StepRow>(row)));
  }

  async signals(turnId: string): Promise<StoredSignal[]> {
    const rows = await this.db.query<SignalRow>('SELECT name, payload FROM {signal} WHERE turn_id = $1', [turnId]);
    return rows.map(toSignal);
  }

  control({ sessionId, mode, foreignSession = false }: LaneControl): Promise<{ notify: boolean }> {
    return this.call('control_lane_v1', { session_id: sessionId ?? ALL_LANES, mode, foreign_session: foreignSession });
  }

  async clear(sessionId: string): Promise<number> {
    const cancelled = await this.call<string[]>('clear_lane_v1', { session_id: sessionId });
    cancelled.forEach((turnId) => this.changed(turnId));
    return cancelled.length;
  }

  async lane(sessionId: string): Promise<Lane> {
    return laneOf(await this.call('lane_v1', { session_id: sessionId }));
  }

  async lanes({ after = '', limit = 50 }: LaneQuery): Promise<LanePage> {
    const { mode, lanes } = await this.call<{ mode: LaneMode | null; lanes: SqlRow[] }>('lanes_v1', { after, limit });
    return { mode: mode ?? 'open', lanes: lanes.map(laneOf) };
  }

  due(limit: number, includeOffered = false): Promise<string[]> {
    return this.call('due_v1', { limit, include_offered: includeOffered });
  }

  purgeSettled(olderThanMs: number, limit: number): Promise<number> {
    return this.call('purge_settled_v1', { older_than_ms: olderThanMs, max_turns: limit });
  }

  private async change(operation: string, args: LaneArgs): Promise<Turn> {
    const { turn } = await this.inLane<ChangedTurn>(operation, args);
    return turnOf(turn);
  }

  /** Calls a function that is short and works in one session's lane. Such calls share statements. */
  private async inLane<T>(operation: string, args: LaneArgs): Promise<T> {
    return granted(await this.laneCalls.call<T>(operation, args));
  }

  private async call<T>(operation: string, args: Readonly<Record<string, unknown>>): Promise<T> {
    return granted(await this.db.call<T>(operation, args));
  }
}

function holdArgs({ sessionId, turnId, fence }: TurnHold): LaneArgs {
  return { session_id: sessionId, turn_id: turnId, fence };
}

function claimArgs(request: ClaimRequest): Record<string, unknown> {
  const { holder, leaseMs, maxLost, lossPauseMs, maxLossPauseMs, suspects, windows, documents } = request;
  return {
    holder,
    lease_ms: leaseMs,
    max_lost: maxLost,
    loss_pause_ms: lossPauseMs,
    max_loss_pause_ms: maxLossPauseMs,
    suspects,
    windows,
    documents,
  };
}

/** Returns the arguments of `record_spending`. */
function spendingArgs({ sessionId }: TurnHold, spending: TurnSpending | undefined): Record<string, unknown> {
  if (!spending) return {};
  const { usage, change } = spending;
  return {
    usage: JSON.stringify(usage),
    change: change && appendArgs({ ...change.name, sessionId }, change.append),
  };
}

/** Returns `undefined` without changes, so that no document is locked. */
function changesArgs(sessionId: string, changes: readonly StateChange[]): Record<string, unknown>[] | undefined {
  if (changes.length === 0) return undefined;
  return changes.map(({ name, append }) => appendArgs({ ...name, sessionId }, append));
}

function turnOf(row: SqlRow): Turn {
  return toTurn(toRow<TurnRow>(row));
}

function laneOf(row: SqlRow): Lane {
  return toLane(toRow<LaneViewRow>(row));
}

function toClaimedTurn(claimed: Claimed): ClaimedTurn {
  const { fence, session, checkpoint, history, steps, documents } = claimed;
  const turn = turnOf(claimed.turn);
  return {
    hold: { sessionId: turn.sessionId, turnId: turn.id, fence },
    turn,
    session: session && toSessionFromSql(session),
    checkpoint: checkpoint && toCheckpoint(toRow<CheckpointRow>(checkpoint)),
    history: history.map((row) => toMessage(toRow<MessageRow>(row))),
    steps: steps.map((row) => toStep(toRow<StepRow>(row))),
    documents: documents.map((row) => row && toDocumentFromSql(row)),
    epochs: epochsOf(claimed),
  };
}

function toSessionChange(change: Settled['session_change']): SessionChange | undefined {
  if (!change) return undefined;
  const { session, previous_state: previousState, changed } = change;
  return { session: toSessionFromSql(session), previousState, changed };
}
