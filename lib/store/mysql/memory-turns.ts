import { isTerminal } from '../../ledger/turn.js';
import { type SignalRow, type StepRow, type StepRowKey, type TurnEventRow, type TurnRow } from '../core/rows.js';
import { type TurnSelection } from '../core/turn-selection.js';
import { GroupIndex, joined, type Journal, MemoryTable, SetIndex } from './memory-table.js';

export class MemoryTurns extends MemoryTable<TurnRow, string> {
  private readonly all = new GroupIndex<TurnRow>((row) => row.position);
  private readonly opened = new GroupIndex<TurnRow>((row) => row.position);
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

  protected override added(row: TurnRow): void {
    this.all.add(row.sessionId, row);
    if (!isTerminal(row.status)) this.opened.add(row.sessionId, row);
    if (row.idempotencyKey !== null) this.byKey.set(joined(row.sessionId, row.idempotencyKey), row.id);
  }

  protected override removed(row: TurnRow): void {
    this.all.remove(row.sessionId, row);
    this.opened.remove(row.sessionId, row);
    if (row.idempotencyKey !== null) this.byKey.delete(joined(row.sessionId, row.idempotencyKey));
  }
}

export class MemorySteps extends MemoryTable<StepRow, StepRowKey> {
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

export class MemoryTurnEvents extends MemoryTable<TurnEventRow, Pick<TurnEventRow, 'turnId' | 'lastOffset'>> {
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
