import { type JsonValue } from '../../common/json.js';
import { type Lane, type LaneMode, type LanePage, type LaneQuery } from '../../turn/lane.js';
import {
  type AcceptedTurn,
  type AcceptTurn,
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
} from '../../turn/turn.store.js';
import { type Session } from '../../session/session.js';
import { type StoredStep } from '../../turn/turn-step.js';
import { type CancelMode, type Turn } from '../../turn/turn.js';
import { interruptedMessages } from '../../turn/user-message.js';
import { writtenNamespaces } from '../../turn/written-namespaces.js';
import { newTurn } from '../embedded/accept-turn.js';
import { ALL_LANES } from '../embedded/lane.js';
import { toTurn } from '../embedded/row-mapping.js';
import { type RedisDatabase } from './redis-database.js';
import { appendArgs, documentId, documentOf } from './redis-documents.js';
import {
  changeOf,
  checkpointOf,
  checkpointText,
  type Fields,
  laneOf,
  messageText,
  sessionOf,
  signalsOf,
  stepField,
  stepsOf,
  type StoredChange,
  type StoredLaneView,
  type StoredWindow,
  turnOf,
  windowOf,
} from './redis-rows.js';
import { CLEAR_LANE, CONTROL_LANE, GET_LANE, LIST_LANES } from './scripts/lane-control.js';
import { ACCEPT } from './scripts/turn-accept.js';
import {
  CANCEL,
  DUE,
  GET_TURN,
  LIST_TURNS,
  PURGE_SETTLED,
  SIGNAL,
  TURN_SIGNALS,
  TURN_STEPS,
} from './scripts/turn-change.js';
import { CLAIM } from './scripts/turn-claim.js';
import { RELEASE, RENEW, RETRY, SAVE_STEP, WAIT } from './scripts/turn-hold.js';
import { type Script } from './scripts/script.js';
import { SETTLE } from './scripts/turn-settle.js';

type StoredClaim = readonly [
  fence: number | string,
  turn: Fields,
  /** `null`: as the settle before has left it. */
  session: Fields | null,
  /** A number: the one that the settle before has written, at this time. */
  checkpoint: string | number | null,
  window: StoredWindow,
  steps: Fields,
  documents: readonly (Fields | null)[],
  epochs: string | null,
];

/** The turn ledger in Redis: one script an operation. */
export class RedisTurns implements TurnLedger {
  /** @param changed is told of turns that this process ended or asked to stop, whether or not SUBSCRIBE works */
  constructor(
    private readonly db: RedisDatabase,
    private readonly changed: (turnId: string, turn?: Turn) => void,
  ) {}

  async accept(request: AcceptTurn): Promise<AcceptedTurn> {
    const { id, sessionId, idempotency } = request;
    const turn = toTurn(newTurn(request, 0, 0));
    const [duplicate, ring, ...rest] = await this.db.run<[number, number, ...unknown[]]>(
      ACCEPT,
      id,
      sessionId,
      idempotency?.key ?? '',
      idempotency?.hash ?? '',
      idempotency?.ttlMs ?? '',
      request.whenBusy,
      request.maxQueued,
      request.maxSessionLifetimeMs ?? '',
      request.foreignSession ? '1' : '',
      request.orchestrator,
      request.version,
      JSON.stringify(request.request),
      JSON.stringify(request.attributes),
      interruptedMessages(turn).map(messageText).join(''),
    );
    if (duplicate === 1) return { turn: turnOf(rest[0] as Fields), duplicate: true, ring: ring === 1 };
    const [position, now] = rest as [number, number];
    return { turn: toTurn(newTurn(request, position, now)), duplicate: false, ring: ring === 1 };
  }

  async claim(sessionId: string, request: ClaimRequest): Promise<ClaimedTurn | null> {
    const [claimed] = await this.db.run<[StoredClaim | null]>(CLAIM, sessionId, requestText(sessionId, request));
    return claimed && claimOf(claimed, null, '');
  }

  async renew(hold: TurnHold, leaseMs: number): Promise<RenewedLease> {
    const [cancelMode] = await this.db.run<[CancelMode | null]>(RENEW, ...holdArgs(hold), leaseMs);
    return cancelMode === null ? {} : { cancelMode };
  }

  async settle(hold: TurnHold, settlement: TurnSettlement, next?: ClaimRequest): Promise<SettledTurn> {
    const { status, reply, error, report, messages, checkpoint, keepCheckpoints, stateChanges = [] } = settlement;
    const text = checkpoint ? checkpointText(checkpoint) : '';
    const [fields, sessionChange, claimed, ring] = await this.db.run<
      [turn: Fields, sessionChange: StoredChange | null, next: StoredClaim | null, ring: number]
    >(
      SETTLE,
      ...holdArgs(hold),
      status,
      JSON.stringify(reply) ?? '',
      JSON.stringify(error) ?? '',
      JSON.stringify(report) ?? '',
      checkpoint?.orchestrator ?? '',
      checkpoint?.turnIndex ?? '',
      text,
      keepCheckpoints === 'all' ? '' : keepCheckpoints,
      next ? requestText(hold.sessionId, next) : '',
      JSON.stringify(writtenNamespaces(settlement)),
      stateChanges.length,
      ...stateChanges.flatMap(({ name, append }) => appendArgs({ ...name, sessionId: hold.sessionId }, append)),
      ...messages.map(messageText),
    );
    const turn = turnOf(fields);
    this.changed(turn.id, turn);
    const change = sessionChange && changeOf(sessionChange);
    return {
      turn,
      ...(change ? { sessionChange: change } : {}),
      next: claimed && claimOf(claimed, change && change.session, text),
      ring: ring === 1,
    };
  }

  retry(hold: TurnHold, { error, delayMs }: TurnFailure): Promise<Turn> {
    return this.change(RETRY, ...holdArgs(hold), JSON.stringify(error), delayMs);
  }

  release(hold: TurnHold, delayMs: number): Promise<Turn> {
    return this.change(RELEASE, ...holdArgs(hold), delayMs);
  }

  async wait(
    hold: TurnHold,
    { signal, step, timeoutMs }: TurnWait,
  ): Promise<{ turn: Turn; received?: { payload: JsonValue } }> {
    const [turn, payload] = await this.db.run<[turn: Fields, payload?: string]>(
      WAIT,
      ...holdArgs(hold),
      signal,
      stepField(step),
      timeoutMs ?? '',
    );
    if (payload === undefined) return { turn: turnOf(turn) };
    return { turn: turnOf(turn), received: { payload: JSON.parse(payload) as JsonValue } };
  }

  async signal(turnId: string, name: string, payload: JsonValue): Promise<SignalledTurn> {
    const [turn, accepted, ring] = await this.db.run<[turn: Fields, accepted: number, ring: number]>(
      SIGNAL,
      turnId,
      name,
      JSON.stringify(payload),
    );
    return { turn: turnOf(turn), accepted: accepted === 1, ring: ring === 1 };
  }

  async cancel(turnId: string, mode: CancelMode): Promise<ChangedLane> {
    const [fields, ring] = await this.db.run<[turn: Fields, ring: number]>(CANCEL, turnId, mode);
    const turn = turnOf(fields);
    this.changed(turn.id, turn);
    return { turn, ring: ring === 1 };
  }

  async saveStep(hold: TurnHold, step: StoredStep): Promise<StoredStep> {
    const args = [...holdArgs(hold), stepField(step), JSON.stringify(step.value)];
    const [value] = await this.db.run<[value: string]>(SAVE_STEP, ...args);
    return { ...step, value: JSON.parse(value) as JsonValue };
  }

  async get(turnId: string): Promise<Turn | null> {
    const [turn] = await this.db.run<[Fields | null]>(GET_TURN, turnId);
    return turn && turnOf(turn);
  }

  async list({ sessionId, status, after = 0, limit = 50 }: TurnQuery): Promise<Turn[]> {
    const statuses = status === undefined ? [] : typeof status === 'string' ? [status] : status;
    if (status !== undefined && statuses.length === 0) return [];
    const [turns] = await this.db.run<[Fields[]]>(LIST_TURNS, sessionId, after, limit, ...statuses);
    return turns.map(turnOf);
  }

  async steps(turnId: string): Promise<StoredStep[]> {
    const [steps] = await this.db.run<[Fields]>(TURN_STEPS, turnId);
    return stepsOf(steps);
  }

  async signals(turnId: string): Promise<StoredSignal[]> {
    const [signals] = await this.db.run<[Fields]>(TURN_SIGNALS, turnId);
    return signalsOf(signals);
  }

  async control({ sessionId, mode, foreignSession }: LaneControl): Promise<{ ring: boolean }> {
    const args = [sessionId ?? ALL_LANES, mode, foreignSession ? '1' : ''];
    const [ring] = await this.db.run<[ring: number]>(CONTROL_LANE, ...args);
    return { ring: ring === 1 };
  }

  async clear(sessionId: string): Promise<number> {
    const [cancelled] = await this.db.run<[string[]]>(CLEAR_LANE, sessionId);
    cancelled.forEach((turnId) => this.changed(turnId));
    return cancelled.length;
  }

  async lane(sessionId: string): Promise<Lane> {
    const [view] = await this.db.run<[StoredLaneView]>(GET_LANE, sessionId);
    return laneOf(view);
  }

  async lanes({ after = '', limit = 50 }: LaneQuery): Promise<LanePage> {
    const [mode, views] = await this.db.run<[LaneMode, StoredLaneView[]]>(LIST_LANES, `(${after}`, limit);
    return { mode, lanes: views.map(laneOf) };
  }

  async due(limit: number): Promise<string[]> {
    const [sessionIds] = await this.db.run<[string[]]>(DUE, limit);
    return sessionIds;
  }

  async purgeSettled(olderThanMs: number, limit: number): Promise<number> {
    const [removed] = await this.db.run<[number]>(PURGE_SETTLED, olderThanMs, limit);
    return removed;
  }

  private async change(script: Script, ...args: readonly (string | number)[]): Promise<Turn> {
    const [turn] = await this.db.run<[Fields]>(script, ...args);
    return turnOf(turn);
  }
}

function holdArgs({ sessionId, turnId, fence }: TurnHold): [string, string, number] {
  return [sessionId, turnId, fence];
}

/** As scripts read it: documents by their ids. */
function requestText(sessionId: string, { documents, ...request }: ClaimRequest): string {
  if (!documents) return JSON.stringify(request);
  const ids = Object.entries(documents).map(([orchestrator, names]) => [
    orchestrator,
    names.map((name) => documentId({ ...name, sessionId })),
  ]);
  // Not by assignment: an orchestrator may be named __proto__.
  return JSON.stringify({ ...request, documents: Object.fromEntries(ids) as Record<string, string[]> });
}

/** @param settled what a settle has made of the session; @param written the checkpoint that it wrote */
function claimOf(
  [fence, fields, session, checkpoint, window, steps, documents, epochs]: StoredClaim,
  settled: Session | null,
  written: string,
): ClaimedTurn {
  const turn = turnOf(fields);
  const { sessionId, orchestrator } = turn;
  const stored = typeof checkpoint === 'number' ? `${checkpoint}\n${written}` : checkpoint;
  return {
    hold: { sessionId, turnId: turn.id, fence: Number(fence) },
    turn,
    session: session && session.length > 0 ? sessionOf(session) : settled,
    checkpoint: stored === null ? null : checkpointOf(orchestrator, sessionId, stored),
    history: windowOf(sessionId, window),
    steps: stepsOf(steps),
    documents: documents.map((found) => found && documentOf(found)),
    epochs: JSON.parse(epochs ?? '{}') as Record<string, string>,
  };
}
