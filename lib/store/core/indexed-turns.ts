import { IndexedTable, take } from './indexed-table.js';
import {
  type LaneRow,
  type LaneViewRow,
  type SignalRow,
  type StepRow,
  type StepRowKey,
  type TurnEventRow,
  type TurnRow,
} from './rows.js';
import { type TableTransaction } from './table-database.js';
import { type LaneTable, type SignalTable, type StepTable, type TurnEventTable, type TurnTable } from './tables.js';
import { type TurnSelection } from './turn-selection.js';

export class IndexedLanes extends IndexedTable<LaneRow, string> implements LaneTable {
  constructor(tx: TableTransaction) {
    super(tx, 'lane');
  }

  due(now: number, limit: number): LaneRow[] {
    return take(this.scan('attention', [], { before: [now + 1], limit }), limit);
  }

  dueOrOffered(now: number, until: number, limit: number): LaneRow[] {
    const since = ({ offers, attentionAt, firstAttentionAt }: LaneRow): number =>
      (offers > 0 ? firstAttentionAt : attentionAt) ?? 0;
    return [...this.scan('attention', [], { before: [until + 1] })]
      .filter(({ offers, attentionAt }) => offers > 0 || (attentionAt ?? 0) <= now)
      .sort((a, b) => since(a) - since(b))
      .slice(0, limit);
  }
}

export class IndexedTurns extends IndexedTable<TurnRow, string> implements TurnTable {
  constructor(tx: TableTransaction) {
    super(tx, 'turn');
  }

  head(sessionId: string): TurnRow | undefined {
    return this.first('open', [sessionId]);
  }

  open(sessionId: string): TurnRow[] {
    return this.all('open', [sessionId]);
  }

  byIdempotencyKey(sessionId: string, key: string): TurnRow | undefined {
    return this.first('idempotency', [sessionId, key], { reverse: true });
  }

  select({ sessionId, statuses, isOpen, isLatestFirst, after }: TurnSelection, limit: number): TurnRow[] {
    const rows = this.scan(isOpen ? 'open' : 'position', [sessionId], {
      ...(isLatestFirst ? { before: [after], reverse: true } : { after: [after] }),
      ...(statuses === null ? { limit } : {}),
    });
    return take(statuses === null ? rows : withStatus(rows, statuses), limit);
  }

  ofSession(sessionId: string): TurnRow[] {
    return this.all('position', [sessionId]);
  }

  viewOpenLanes(after: string, limit: number): LaneViewRow[] {
    const sessionIds = take(this.distinct('open', [], 'sessionId', { after: [after] }), limit);
    return sessionIds.map((sessionId) => this.viewLane(sessionId));
  }

  viewLane(sessionId: string): LaneViewRow {
    const lane = this.tx.get('lane', [sessionId]) as LaneRow | undefined;
    const [head, next] = take(this.scan('open', [sessionId], { limit: 2 }), 2);
    return {
      sessionId,
      mode: lane?.mode ?? null,
      depth: lane?.depth ?? 0,
      holder: lane?.holder ?? null,
      leaseUntil: lane?.leaseUntil ?? null,
      turnId: head?.id ?? null,
      orchestrator: head?.orchestrator ?? null,
      status: head?.status ?? null,
      failures: head?.failures ?? null,
      lost: head?.lost ?? null,
      cancelMode: head?.cancelMode ?? null,
      waitSignal: head?.waitSignal ?? null,
      waitUntil: head?.waitUntil ?? null,
      acceptedAt: head?.acceptedAt ?? null,
      startedAt: head?.startedAt ?? null,
      dueAt: head?.dueAt ?? null,
      nextAcceptedAt: next?.acceptedAt ?? null,
    };
  }

  /** Turns that settled before a time, the oldest first. */
  settledBefore(time: number, limit: number): TurnRow[] {
    return take(this.scan('settled', [], { before: [time], limit }), limit);
  }

  /** Turns whose events have expired, the earliest first. */
  withExpiredEvents(now: number, limit: number): TurnRow[] {
    return take(this.scan('events', [], { before: [now + 1], limit }), limit);
  }

  /** Adds the columns that exist for indexes only. */
  protected override put(row: TurnRow): void {
    const { sessionId, settledAt, eventTtl } = row;
    const columns = {
      openIn: settledAt === null ? sessionId : null,
      eventsExpireAt: settledAt === null || eventTtl === null ? null : settledAt + eventTtl,
    };
    super.put(Object.assign(row, columns));
  }
}

export class IndexedSteps extends IndexedTable<StepRow, StepRowKey> implements StepTable {
  constructor(tx: TableTransaction) {
    super(tx, 'step');
  }

  ofTurn(turnId: string): StepRow[] {
    return this.all('primary', [turnId]);
  }
}

export class IndexedSignals extends IndexedTable<SignalRow, Pick<SignalRow, 'turnId' | 'name'>> implements SignalTable {
  constructor(tx: TableTransaction) {
    super(tx, 'signal');
  }

  ofTurn(turnId: string): SignalRow[] {
    return this.all('primary', [turnId]);
  }
}

export class IndexedTurnEvents
  extends IndexedTable<TurnEventRow, Pick<TurnEventRow, 'turnId' | 'lastOffset'>>
  implements TurnEventTable
{
  constructor(tx: TableTransaction) {
    super(tx, 'turn_event');
  }

  last(turnId: string): TurnEventRow | undefined {
    return this.first('primary', [turnId], { reverse: true });
  }

  select(turnId: string, after: number, limit: number): TurnEventRow[] {
    const rows: TurnEventRow[] = [];
    for (const row of this.scan('primary', [turnId], { after: [after], limit })) {
      rows.push(row);
      if (row.lastOffset >= after + limit) break;
    }
    return rows;
  }

  ofTurn(turnId: string): TurnEventRow[] {
    return this.all('primary', [turnId]);
  }
}

function* withStatus(rows: Iterable<TurnRow>, statuses: readonly TurnRow['status'][]): Generator<TurnRow> {
  for (const row of rows) if (statuses.includes(row.status)) yield row;
}
