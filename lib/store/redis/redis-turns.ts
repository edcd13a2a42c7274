import { type NewMessage } from '../../ledger/conversation.store.js';
import { type JsonValue } from '../../common/json.js';
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
import { stepText, type StoredStep } from '../../ledger/turn-step.js';
import { type CancelMode, type Turn } from '../../ledger/turn.js';
import { type TurnSpending } from '../../ledger/turn-usage.js';
import { writtenNamespaces } from '../../ledger/namespaces.js';
import { awaitedBy, toAwaited } from '../core/awaited.js';
import { ALL_LANES } from '../core/lane.js';
import { readableList, readAll } from '../core/corrupt-records.js';
import { selectionOf } from '../core/turn-selection.js';
import { type RedisDatabase } from './redis-database.js';
import { appendArgs, documentId, documentOf, requiredSession } from './redis-documents.js';
import {
  changeOf,
  checkpointOf,
  checkpointText,
  type Fields,
  keepText,
  laneOf,
  messageText,
  sessionOf,
  signalsOf,
  stepsOf,
  touched,
  versionOf,
  type StoredChange,
  type StoredCheckpoint,
  type StoredLaneView,
  type StoredWindow,
  windowOf,
} from './redis-rows.js';
import {
  acceptedRow,
  acceptedTexts,
  outcomeText,
  settledRow,
  type TurnFields,
  turnFrom,
  turnOf,
  turnRow,
} from './redis-turn-rows.js';
import { type Script, SCRIPTS } from './redis-scripts.js';

/** A value is `null` if the client already knows it, did not request it, or it does not exist. */
type StoredClaim = readonly [
  fence: string,
  turn: Fields | null,
  session: Fields | null,
  /** A number means the checkpoint that the preceding settle wrote at this time. */
  checkpoint: StoredCheckpoint | number | null,
  window: StoredWindow | null,
  steps: Fields | null,
  documents: readonly (Fields | null)[] | null,
  epochs: string | null,
];

type StoredAcceptance =
  | readonly [duplicate: 1, notify: number, turn: Fields, claimed: StoredClaim | null]
  | readonly [duplicate: 0, notify: number, position: number, now: number, claimed: StoredClaim | null];

/** A claim in its stored form. */
interface KnownClaim {
  readonly turn: TurnFields;
  /** `null` for an external session. */
  readonly session: Fields | null;
  readonly checkpoint?: string;
}

/** Stores the turn ledger in Redis. Each operation is one script. */
export class RedisTurns implements TurnLedger {
  /** Claims by this process. A settle needs no second copy of their data. */
  private readonly held = new WeakMap<TurnHold, KnownClaim>();

  /** @param changed notified of turns that this process ended or asked to stop, even if SUBSCRIBE fails */
  constructor(
    private readonly db: RedisDatabase,
    private readonly changed: (turnId: string, turn?: Turn) => void,
  ) {}

  async accept(request: AcceptTurn): Promise<AcceptedTurn> {
    const { id, sessionId, idempotency } = request;
    const [stored, userMessage] = acceptedTexts(request);
    const reply = await this.db.run<StoredAcceptance>(
      SCRIPTS.accept,
      id,
      sessionId,
      idempotency?.key ?? '',
      idempotency?.hash ?? '',
      idempotency?.ttlMs ?? '',
      request.whenBusy,
      request.maxQueued,
      request.maxSessionLifetimeMs ?? '',
      requiredSession({ requireSession: request.foreignSession ? false : (request.requireSession ?? true) }),
      request.orchestrator,
      stored,
      userMessage,
      ...claimArgs(sessionId, request.claim),
    );
    const notify = reply[1] === 1;
    if (reply[0] === 1) {
      const [, , turn, claimed] = reply;
      return { turn: turnOf(turn), duplicate: true, notify, ...(claimed ? { claimed: this.claimed(claimed) } : {}) };
    }
    const [, , position, now, claimed] = reply;
    const row = acceptedRow(request, stored, position, now);
    const turn = turnFrom(row);
    if (!claimed) return { turn, duplicate: false, notify };
    return {
      turn,
      duplicate: false,
      notify,
      claimed: this.claimed(claimed, { turn: { ...row, status: 'running', startedAt: now } }),
    };
  }

  async claim(sessionId: string, request: ClaimRequest): Promise<ClaimedTurn | null> {
    const [claimed, lost, isSuspect] = await this.db.run<
      [claimed: StoredClaim | null, lost: readonly [turn: Fields, holder: string] | null, isSuspect: number]
    >(SCRIPTS.claim, sessionId, ...claimArgs(sessionId, request));
    const given = claimed && this.claimed(claimed);
    if (lost) {
      const row = turnRow(lost[0]);
      request.onNotice?.({
        type: 'lost',
        turn: given?.turn.id === row.id ? given.turn : turnFrom(row),
        lostSinceStep: Number(row.lostSinceStep),
        holder: lost[1],
      });
    }
    if (isSuspect === 1) request.onNotice?.({ type: 'suspect' });
    return given;
  }

  async renew(hold: TurnHold, leaseMs: number): Promise<RenewedLease> {
    const [cancelMode] = await this.db.run<[CancelMode | null]>(SCRIPTS.renew, ...holdArgs(hold), leaseMs);
    return cancelMode === null ? {} : { cancelMode };
  }

  async settle(hold: TurnHold, settlement: TurnSettlement, next?: ClaimRequest): Promise<SettledTurn> {
    const { status, error, usage, messages, checkpoint, keepCheckpoints, sessionTtlMs, stateChanges = [] } = settlement;
    const text = checkpoint ? checkpointText(checkpoint) : '';
    const outcome = outcomeText(settlement);
    const known = this.held.get(hold);
    const [settled, sessionChange, claimed, notify] = await this.db.run<
      [turn: Fields | number, sessionChange: StoredChange | number | null, next: StoredClaim | null, notify: number]
    >(
      SCRIPTS.settle,
      ...holdArgs(hold),
      status,
      outcome,
      JSON.stringify(error) ?? '',
      checkpoint?.orchestrator ?? '',
      checkpoint?.turnIndex ?? '',
      text,
      keepCheckpoints === 'all' ? '' : keepCheckpoints,
      JSON.stringify(writtenNamespaces(settlement)),
      ...claimArgs(hold.sessionId, next),
      known ? '1' : '',
      known?.session ? versionOf(known.session) : '',
      sessionTtlMs ?? '',
      JSON.stringify(usage) ?? '',
      stateChanges.length,
      ...stateChanges.flatMap(({ name, append }) => appendArgs({ ...name, sessionId: hold.sessionId }, append)),
      ...messages.map(messageText),
    );
    const turn =
      typeof settled === 'number'
        ? turnFrom(settledRow((known as KnownClaim).turn, settlement, outcome, settled))
        : turnOf(settled);
    this.changed(turn.id, turn);
    const change =
      typeof sessionChange === 'number'
        ? touched((known as KnownClaim).session as Fields, sessionChange)
        : sessionChange;
    return {
      turn,
      ...(change ? { sessionChange: changeOf(change) } : {}),
      next: claimed && this.claimed(claimed, { session: change && change[0], checkpoint: text }),
      notify: notify === 1,
    };
  }

  retry(hold: TurnHold, { error, delayMs, spending }: TurnFailure): Promise<Turn> {
    const args = [JSON.stringify(error), delayMs, ...spendingArgs(hold, spending)];
    return this.change(SCRIPTS.retry, ...holdArgs(hold), ...args);
  }

  release(hold: TurnHold, delayMs: number, spending?: TurnSpending): Promise<Turn> {
    return this.change(SCRIPTS.release, ...holdArgs(hold), delayMs, ...spendingArgs(hold, spending));
  }

  async wait(
    hold: TurnHold,
    { signal, step, others = [], timeoutMs, spending }: TurnWait,
  ): Promise<{ turn: Turn; received?: { payload: JsonValue } }> {
    const [turn, payload] = await this.db.run<[turn: Fields, payload?: string]>(
      SCRIPTS.wait,
      ...holdArgs(hold),
      signal,
      stepText(step),
      timeoutMs ?? '',
      others.length > 0 ? JSON.stringify(others) : '',
      ...spendingArgs(hold, spending),
    );
    if (payload === undefined) return { turn: turnOf(turn) };
    return { turn: turnOf(turn), received: { payload: JSON.parse(payload) as JsonValue } };
  }

  async saveAwaited(hold: TurnHold, turns: readonly AwaitedTurn[]): Promise<void> {
    await this.db.run(SCRIPTS.saveAwaited, ...holdArgs(hold), toAwaited(hold, turns));
  }

  async awaited(sessionId: string): Promise<readonly AwaitedTurn[]> {
    const [[leaseUntil, head, fence, awaited]] = await this.db.run<
      [[leaseUntil: string | null, head: string | null, fence: string | null, awaited: string | null]]
    >(SCRIPTS.awaited, sessionId);
    return awaitedBy({ awaited, fence: Number(fence), runningTurn: leaseUntil === null ? null : head });
  }

  async signal(turnId: string, name: string, payload: JsonValue): Promise<SignalledTurn> {
    const [turn, accepted, notify] = await this.db.run<[turn: Fields, accepted: number, notify: number]>(
      SCRIPTS.signal,
      turnId,
      name,
      JSON.stringify(payload),
    );
    return { turn: turnOf(turn), accepted: accepted === 1, notify: notify === 1 };
  }

  async cancel(turnId: string, mode: CancelMode, keep: readonly NewMessage[] = []): Promise<ChangedLane> {
    const args = [turnId, mode, keepText(keep)];
    const [fields, notify] = await this.db.run<[turn: Fields, notify: number]>(SCRIPTS.cancel, ...args);
    const turn = turnOf(fields);
    this.changed(turn.id, turn);
    return { turn, notify: notify === 1 };
  }

  async saveStep(hold: TurnHold, step: StoredStep, spending?: TurnSpending): Promise<StoredStep> {
    const args = [stepText(step), JSON.stringify(step.value), ...spendingArgs(hold, spending)];
    const [value] = await this.db.run<[value: string]>(SCRIPTS.saveStep, ...holdArgs(hold), ...args);
    const known = spending && this.held.get(hold);
    if (known) this.held.set(hold, { ...known, turn: { ...known.turn, spent: JSON.stringify(spending.usage) } });
    return { ...step, value: JSON.parse(value) as JsonValue };
  }

  async get(turnId: string): Promise<Turn | null> {
    const [turn] = await this.db.run<[Fields | null]>(SCRIPTS.getTurn, turnId);
    return turn && turnOf(turn);
  }

  async list({ limit = 50, ...query }: TurnQuery): Promise<Turn[]> {
    const { sessionId, statuses, isOpen, isLatestFirst, after } = selectionOf(query);
    if (statuses?.length === 0) return [];
    return readableList(limit, async (most) => {
      const order = isLatestFirst ? 'desc' : 'asc';
      const args = [sessionId, after, most, order, isOpen ? 1 : 0, ...(statuses ?? [])];
      const [turns] = await this.db.run<[Fields[]]>(SCRIPTS.listTurns, ...args);
      return readAll(turns, turnOf);
    });
  }

  async steps(turnId: string): Promise<StoredStep[]> {
    const [steps] = await this.db.run<[Fields]>(SCRIPTS.turnSteps, turnId);
    return stepsOf(steps);
  }

  async signals(turnId: string): Promise<StoredSignal[]> {
    const [signals] = await this.db.run<[Fields]>(SCRIPTS.turnSignals, turnId);
    return signalsOf(signals);
  }

  async control({ sessionId, mode, foreignSession }: LaneControl): Promise<{ notify: boolean }> {
    const args = [sessionId ?? ALL_LANES, mode, foreignSession ? '1' : ''];
    const [notify] = await this.db.run<[notify: number]>(SCRIPTS.controlLane, ...args);
    return { notify: notify === 1 };
  }

  async clear(sessionId: string): Promise<number> {
    const [cancelled] = await this.db.run<[string[]]>(SCRIPTS.clearLane, sessionId);
    cancelled.forEach((turnId) => this.changed(turnId));
    return cancelled.length;
  }

  async lane(sessionId: string): Promise<Lane> {
    const [view] = await this.db.run<[StoredLaneView]>(SCRIPTS.getLane, sessionId);
    return laneOf(view);
  }

  async lanes({ after = '', limit = 50 }: LaneQuery): Promise<LanePage> {
    const [mode, views] = await this.db.run<[LaneMode, StoredLaneView[]]>(SCRIPTS.listLanes, `(${after}`, limit);
    return { mode, lanes: views.map(laneOf) };
  }

  async due(limit: number, includeOffered = false): Promise<string[]> {
    const [sessionIds] = await this.db.run<[string[]]>(includeOffered ? SCRIPTS.dueOrOffered : SCRIPTS.due, limit);
    return sessionIds;
  }

  async purgeSettled(olderThanMs: number, limit: number): Promise<number> {
    const [removed] = await this.db.run<[number]>(SCRIPTS.purgeSettled, olderThanMs, limit);
    return removed;
  }

  private async change(script: Script, ...args: readonly (string | number)[]): Promise<Turn> {
    const [turn] = await this.db.run<[Fields]>(script, ...args);
    return turnOf(turn);
  }

  /** @param known the data that the reply omits */
  private claimed(
    [fence, fields, stored, checkpoint, window, steps, documents, epochs]: StoredClaim,
    known: Partial<KnownClaim> = {},
  ): ClaimedTurn {
    const row = fields ? turnRow(fields) : (known.turn as TurnFields);
    const session = stored ?? known.session ?? null;
    const turn = turnFrom(row);
    const { sessionId, orchestrator } = turn;
    const latest: StoredCheckpoint | null =
      typeof checkpoint === 'number' ? [checkpoint, known.checkpoint ?? ''] : checkpoint;
    const hold = { sessionId, turnId: turn.id, fence: Number(fence) };
    this.held.set(hold, { turn: row, session });
    return {
      hold,
      turn,
      session: session && session.length > 0 ? sessionOf(session) : null,
      checkpoint: latest && checkpointOf(orchestrator, sessionId, latest),
      history: windowOf(sessionId, window),
      steps: stepsOf(steps ?? []),
      documents: (documents ?? []).map((found) => found && documentOf(found)),
      epochs: JSON.parse(epochs ?? '{}') as Record<string, string>,
    };
  }
}

function holdArgs({ sessionId, turnId, fence }: TurnHold): [string, string, number] {
  return [sessionId, turnId, fence];
}

/** Returns the arguments of record_spending in scripts/include/spending.lua. */
function spendingArgs({ sessionId }: TurnHold, spending: TurnSpending | undefined): (string | number)[] {
  if (!spending) return [];
  const { usage, change } = spending;
  if (!change) return [JSON.stringify(usage)];
  const { name, append } = change;
  return [JSON.stringify(usage), JSON.stringify([name.namespace]), ...appendArgs({ ...name, sessionId }, append)];
}

/** Returns the arguments of claim_from in scripts/include/attempt.lua. */
function claimArgs(sessionId: string, request: ClaimRequest | undefined): (string | number)[] {
  if (!request) return ['', '', '', ''];
  return [request.holder, request.leaseMs, lossesText(request), needsText(sessionId, request)];
}

/** Packs the settings for lost turns into one argument: the limit, the first and longest pause, `s` to include suspects. */
function lossesText({ maxLost, lossPauseMs = 0, maxLossPauseMs = lossPauseMs, suspects }: ClaimRequest): string {
  return `${maxLost} ${lossPauseMs} ${maxLossPauseMs}${suspects ? ' s' : ''}`;
}

/** Returns the number of messages and the document ids by orchestrator, as JSON, or '' if nothing is needed. */
function needsText(sessionId: string, request: ClaimRequest): string {
  const windows = Object.entries(request.windows).filter(([, limit]) => limit > 0);
  const documents = Object.entries(request.documents ?? {})
    .filter(([, names]) => names.length > 0)
    .map(([orchestrator, names]) => [orchestrator, names.map((name) => documentId({ ...name, sessionId }))]);
  if (windows.length === 0 && documents.length === 0) return '';
  // Avoids assignment, because an orchestrator may be named __proto__.
  return JSON.stringify({ windows: Object.fromEntries(windows), documents: Object.fromEntries(documents) as unknown });
}
