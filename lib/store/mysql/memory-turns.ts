import { isTerminal } from '../../ledger/turn.js';
import {
  type LaneRow,
  type SignalRow,
  type StepRow,
  type StepRowKey,
  type TurnEventRow,
  type TurnRow,
} from '../core/rows.js';
import { type LaneTable, type StepTable, type TurnEventTable, type TurnTable } from '../core/tables.js';
import { type TurnSelection } from '../core/turn-selection.js';
import { GroupIndex, joined, type Journal, MemoryTable, SetIndex } from './memory-table.js';

export class MemoryLanes extends MemoryTable<LaneRow, string> implements LaneTable {
  /** Contains only lanes that are due at some time. Idle lanes are not included. */
  private readonly attended = new Set<string>();

  constructor(journal: Journal) {
    super(journal, (key) => (typeof key === 'string' ? key : key.sessionId));
  }

  due(now: number, limit: number): LaneRow[] {
    return [...this.attended]
      .flatMap((id) => this.rows.get(id) ?? [])
      .filter(({ attentionAt }) => attentionAt !== null && attentionAt <= now)
      .sort((a, b) => (a.attentionAt ?? 0) - (b.attentionAt ?? 0))
      .slice(0, limit);
  }

  dueOrOffered(now: number, until: number, limit: number): LaneRow[] {
    const first = ({ offers, attentionAt, firstAttentionAt }: LaneRow) =>
      (offers > 0 ? firstAttentionAt : attentionAt) ?? 0;
    return [...this.attended]
      .flatMap((id) => this.rows.get(id) ?? [])
      .filter(({ attentionAt, offers }) => attentionAt !== null && attentionAt <= (offers > 0 ? until : now))
      .sort((a, b) => first(a) - first(b))
      .slice(0, limit);
  }

  protected override added(row: LaneRow): void {
    if (row.attentionAt !== null) this.attended.add(row.sessionId);
  }

  protected override removed(row: LaneRow): void {
    this.attended.delete(row.sessionId);
  }
}

/** The one group of an index over all rows. */
const ALL = '';

export class MemoryTurns extends MemoryTable<TurnRow, string> implements TurnTable {
  private readonly all = new GroupIndex<TurnRow>((row) => row.position);
  private readonly opened = new GroupIndex<TurnRow>((row) => row.position);
  private readonly settled = new GroupIndex<TurnRow>((row) => row.settledAt ?? 0);
  /** Settled turns that still have events, by the expiry of the events. */
  private readonly expiring = new GroupIndex<TurnRow>((row) => (row.settledAt ?? 0) + (row.eventTtl ?? 0));
  private readonly byKey = new Map<string, string>();

  constructor(journal: Journal) {
    super(journal, (key) => (typeof key === 'string' ? key : key.id));
  }

  head(sessionId: string): TurnRow | undefined {
    return this.opened.of(sessionId)[0];
  }

  open(sessionId: string): TurnRow[] {
    return [...this.opened.of(sessionId)];
  }

  firstOpen(sessionId: string, limit: number): readonly TurnRow[] {
    return this.opened.slice(sessionId, 0, limit);
  }

  /** Sessions that have open turns, by id. */
  openSessions(after: string, limit: number): string[] {
    return this.opened
      .names()
      .filter((id) => id > after)
      .sort()
      .slice(0, limit);
  }

  byIdempotencyKey(sessionId: string, key: string): TurnRow | undefined {
    const id = this.byKey.get(joined(sessionId, key));
    return id === undefined ? undefined : this.rows.get(id);
  }

  select({ sessionId, statuses, isOpen, isLatestFirst, after }: TurnSelection, limit: number): TurnRow[] {
    const turns = isOpen ? this.opened : this.all;
    const most = statuses === null ? limit : Infinity;
    const rows = isLatestFirst ? turns.sliceBefore(sessionId, after, most) : turns.slice(sessionId, after + 1, most);
    return rows.filter(({ status }) => statuses === null || statuses.includes(status)).slice(0, limit);
  }

  ofSession(sessionId: string): readonly TurnRow[] {
    return [...this.all.of(sessionId)];
  }

  /** The oldest first. */
  settledBefore(time: number, limit: number): readonly TurnRow[] {
    const oldest = this.settled.slice(ALL, 0, limit);
    return oldest.filter(({ settledAt }) => settledAt !== null && settledAt < time);
  }

  /** Returns turns with expired events, the earliest first. */
  withExpiredEvents(now: number, limit: number): readonly TurnRow[] {
    const first = this.expiring.slice(ALL, 0, limit);
    return first.filter(({ settledAt, eventTtl }) => (settledAt ?? 0) + (eventTtl ?? 0) <= now);
  }

  protected override added(row: TurnRow): void {
    this.all.add(row.sessionId, row);
    if (row.settledAt !== null && row.eventTtl !== null) this.expiring.add(ALL, row);
    if (isTerminal(row.status)) this.settled.add(ALL, row);
    else this.opened.add(row.sessionId, row);
    if (row.idempotencyKey !== null) this.byKey.set(joined(row.sessionId, row.idempotencyKey), row.id);
  }

  protected override removed(row: TurnRow): void {
    this.all.remove(row.sessionId, row);
    this.opened.remove(row.sessionId, row);
    this.settled.remove(ALL, row);
    this.expiring.remove(ALL, row);
    if (row.idempotencyKey !== null) this.byKey.delete(joined(row.sessionId, row.idempotencyKey));
  }
}

export class MemorySteps extends MemoryTable<StepRow, StepRowKey> implements StepTable {
  private readonly byTurn = new SetIndex<StepRow>();

  constructor(journal: Journal) {
    super(journal, (key) => joined(key.turnId, key.id));
  }

  ofTurn(turnId: string): StepRow[] {
    return this.byTurn.of(turnId);
  }

  protected override added(row: StepRow): void {
    this.byTurn.add(row.turnId, row);
  }

  protected override removed(row: StepRow): void {
    this.byTurn.remove(row.turnId, row);
  }
}

export class MemorySignals extends MemoryTable<SignalRow, Pick<SignalRow, 'turnId' | 'name'>> {
  private readonly byTurn = new SetIndex<SignalRow>();

  constructor(journal: Journal) {
    super(journal, (key) => joined(key.turnId, key.name));
  }

  ofTurn(turnId: string): SignalRow[] {
    return this.byTurn.of(turnId);
  }

  protected override added(row: SignalRow): void {
    this.byTurn.add(row.turnId, row);
  }

  protected override removed(row: SignalRow): void {
    this.byTurn.remove(row.turnId, row);
  }
}

export class MemoryTurnEvents
  extends MemoryTable<TurnEventRow, Pick<TurnEventRow, 'turnId' | 'lastOffset'>>
  implements TurnEventTable
{
  private readonly log = new GroupIndex<TurnEventRow>((row) => row.lastOffset);

  constructor(journal: Journal) {
    super(journal, (key) => joined(key.turnId, key.lastOffset));
  }

  last(turnId: string): TurnEventRow | undefined {
    return this.log.of(turnId).at(-1);
  }

  select(turnId: string, after: number, limit: number): TurnEventRow[] {
    const rows = this.log.slice(turnId, after + 1, limit);
    const enough = rows.findIndex(({ lastOffset }) => lastOffset >= after + limit);
    return enough === -1 ? [...rows] : rows.slice(0, enough + 1);
  }

  ofTurn(turnId: string): readonly TurnEventRow[] {
    return [...this.log.of(turnId)];
  }

  protected override added(row: TurnEventRow): void {
    this.log.add(row.turnId, row);
  }

  protected override removed(row: TurnEventRow): void {
    this.log.remove(row.turnId, row);
  }
}
