import { type NewMessage } from '../../ledger/conversation.store.js';
import { type JsonValue } from '../../common/json.js';
import { type Lane, type LanePage, type LaneQuery } from '../../ledger/lane.js';
import { type StoredStep } from '../../ledger/turn-step.js';
import { type TurnSpending } from '../../ledger/turn-usage.js';
import { TurnNotFoundError } from '../../ledger/turn.errors.js';
import { type CancelMode, isTerminal, type Turn } from '../../ledger/turn.js';
import {
  type AcceptedTurn,
  type AcceptTurn,
  type AwaitedTurn,
  type ChangedLane,
  type ClaimedTurn,
  type ClaimNotice,
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
import { acceptTurn } from './accept-turn.js';
import { awaitedBy, toAwaited } from './awaited.js';
import { claimTurn } from './claim-turn.js';
import { readableList, readAll } from './corrupt-records.js';
import { controlLane } from './lane-control.js';
import { cancelOpenTurns, hasBegun, held, modeOfAll, offerDueLanes, restLane } from './lane.js';
import { keepText, toLane, toSignal, toStep, toTurn } from './row-mapping.js';
import { type TurnRow } from './rows.js';
import { releaseTurn, retryTurn, settleTurn } from './settle-turn.js';
import { recordSpending } from './spending.js';
import { markTurn, stopTurn } from './stop-turn.js';
import { type CoreDatabase, type Transaction } from './tables.js';
import { selectionOf } from './turn-selection.js';
import { storeStep, signalTurn, waitTurn } from './wait-turn.js';

/** Implements the turn ledger on the tables of a store. Each operation is one transaction. */
export class CoreTurnLedger implements TurnLedger {
  constructor(private readonly db: CoreDatabase) {}

  accept(request: AcceptTurn): Promise<AcceptedTurn> {
    return this.db.write((tx) => acceptTurn(tx, request));
  }

  async claim(sessionId: string, request: ClaimRequest): Promise<ClaimedTurn | null> {
    const { claimed, notices } = await this.db.write((tx) => {
      const notices: ClaimNotice[] = [];
      return { claimed: claimTurn(tx, sessionId, request, notices), notices };
    });
    for (const notice of notices) request.onNotice?.(notice);
    return claimed;
  }

  renew(hold: TurnHold, leaseMs: number): Promise<RenewedLease> {
    return this.db.write((tx) => {
      const { turn } = held(tx, hold);
      const leaseUntil = tx.now + leaseMs;
      tx.lanes.update(hold.sessionId, { leaseUntil, attentionAt: leaseUntil, offers: 0 });
      return turn.cancelMode === null ? {} : { cancelMode: turn.cancelMode };
    });
  }

  settle(hold: TurnHold, settlement: TurnSettlement, next?: ClaimRequest): Promise<SettledTurn> {
    return this.db.write((tx) => settleTurn(tx, hold, settlement, next));
  }

  retry(hold: TurnHold, failure: TurnFailure): Promise<Turn> {
    return this.db.write((tx) => retryTurn(tx, hold, failure));
  }

  release(hold: TurnHold, delayMs: number, spending?: TurnSpending): Promise<Turn> {
    return this.db.write((tx) => releaseTurn(tx, hold, delayMs, spending));
  }

  wait(hold: TurnHold, wait: TurnWait): Promise<{ turn: Turn; received?: { payload: JsonValue } }> {
    return this.db.write((tx) => waitTurn(tx, hold, wait));
  }

  saveAwaited(hold: TurnHold, turns: readonly AwaitedTurn[]): Promise<void> {
    return this.db.write((tx) => {
      held(tx, hold);
      tx.lanes.update(hold.sessionId, { awaited: toAwaited(hold, turns) });
    });
  }

  awaited(sessionId: string): Promise<readonly AwaitedTurn[]> {
    return this.db.read((tx) => awaitedBy(tx.lanes.get(sessionId)));
  }

  signal(turnId: string, name: string, payload: JsonValue): Promise<SignalledTurn> {
    return this.db.write((tx) => signalTurn(tx, find(tx, turnId), name, payload));
  }

  cancel(turnId: string, mode: CancelMode, keep?: readonly NewMessage[]): Promise<ChangedLane> {
    return this.db.write((tx) => cancelTurn(tx, find(tx, turnId), mode, keep));
  }

  saveStep(hold: TurnHold, step: StoredStep, spending?: TurnSpending): Promise<StoredStep> {
    return this.db.write((tx) => {
      const turn = recordSpending(tx, held(tx, hold), spending);
      return { ...step, value: storeStep(tx, turn, step) };
    });
  }

  get(turnId: string): Promise<Turn | null> {
    return this.db.read((tx) => {
      const row = tx.turns.get(turnId);
      return row ? toTurn(row) : null;
    });
  }

  list({ limit = 50, ...query }: TurnQuery): Promise<Turn[]> {
    const selection = selectionOf(query);
    return readableList(limit, (most) => this.db.read((tx) => readAll(tx.turns.select(selection, most), toTurn)));
  }

  steps(turnId: string): Promise<StoredStep[]> {
    return this.db.read((tx) => tx.steps.ofTurn(turnId).map(toStep));
  }

  signals(turnId: string): Promise<StoredSignal[]> {
    return this.db.read((tx) => tx.signals.ofTurn(turnId).map(toSignal));
  }

  control(control: LaneControl): Promise<{ notify: boolean }> {
    return this.db.write((tx) => ({ notify: controlLane(tx, control) }));
  }

  clear(sessionId: string): Promise<number> {
    return this.db.write((tx) => cancelOpenTurns(tx, sessionId));
  }

  lane(sessionId: string): Promise<Lane> {
    return this.db.read((tx) => toLane(tx.viewLane(sessionId)));
  }

  lanes({ after = '', limit = 50 }: LaneQuery): Promise<LanePage> {
    return this.db.read((tx) => ({ lanes: tx.viewOpenLanes(after, limit).map(toLane), mode: modeOfAll(tx) }));
  }

  due(limit: number, includeOffered = false): Promise<string[]> {
    return this.db.write((tx) => offerDueLanes(tx, limit, includeOffered));
  }

  purgeSettled(olderThanMs: number, limit: number): Promise<number> {
    return this.db.write((tx) => tx.deleteTurns(tx.now - olderThanMs, limit));
  }
}

function find(tx: Transaction, turnId: string): TurnRow {
  const turn = tx.turns.get(turnId);
  if (!turn) throw new TurnNotFoundError(turnId);
  return turn;
}

function cancelTurn(tx: Transaction, turn: TurnRow, mode: CancelMode, keep?: readonly NewMessage[]): ChangedLane {
  if (isTerminal(turn.status)) return { turn: toTurn(turn), notify: false };
  if (turn.status === 'running') return { turn: toTurn(markTurn(tx, turn, mode, keep)), notify: false };
  const lane = tx.lanes.get(turn.sessionId);
  const wasHead = tx.turns.head(turn.sessionId)?.id === turn.id;
  const cancelled = toTurn(stopTurn(tx, { ...turn, keep: keepText(keep) }, hasBegun(turn) ? mode : 'cancel'));
  if (!lane) return { turn: cancelled, notify: false };
  const depth = lane.depth - 1;
  // Only a change of the head affects the lane: the new head may be due immediately.
  if (wasHead) return { turn: cancelled, notify: restLane(tx, lane.sessionId, depth) };
  tx.lanes.update(lane.sessionId, { depth });
  return { turn: cancelled, notify: false };
}
