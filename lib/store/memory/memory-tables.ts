import { compareSessions } from '../../session/session.cursor.js';
import { LIVE_STATES } from '../../session/session.js';
import { isTerminal, type TurnStatus } from '../../turn/turn.js';
import { iso } from '../embedded/row-mapping.js';
import {
  type CheckpointRow,
  type DocumentRow,
  type LaneRow,
  type MessageRow,
  type SessionRow,
  type StepRow,
  type TurnRow,
} from '../embedded/rows.js';
import {
  type CheckpointTable,
  type DocumentTable,
  type LaneTable,
  type MessageTable,
  type SessionFilter,
  type SessionTable,
  type StepTable,
  type TurnTable,
} from '../embedded/tables.js';
import { type StateAddress } from '../../state/state.store.js';
import { GroupIndex, type Journal, MemoryTable, SetIndex } from './memory-table.js';

/** Keys of several columns as one text; the parts are ids and names, which hold no control characters. */
const joined = (...parts: (string | number)[]): string => parts.join('\u0000');

export class MemorySessions extends MemoryTable<SessionRow, string> implements SessionTable {
  private readonly byUser = new SetIndex<SessionRow>();
  private readonly byState = new SetIndex<SessionRow>();

  constructor(
    journal: Journal,
    private readonly hasOpenTurns: (sessionId: string) => boolean,
  ) {
    super(journal, (key) => (typeof key === 'string' ? key : key.id));
  }

  select(filter: SessionFilter, limit: number): SessionRow[] {
    return this.matching(filter).sort(byActivity).slice(0, limit);
  }

  count(filter: SessionFilter): number {
    return this.matching(filter).length;
  }

  stale(activeBefore: number, limit: number): SessionRow[] {
    return this.byState
      .of('active')
      .filter((row) => row.lastActivityAt < activeBefore)
      .sort((a, b) => a.lastActivityAt - b.lastActivityAt)
      .slice(0, limit);
  }

  ended(activeBefore: number | null, createdBefore: number | null, limit: number): SessionRow[] {
    return LIVE_STATES.flatMap((state) => this.byState.of(state))
      .filter(
        (row) =>
          (createdBefore !== null && row.createdAt < createdBefore) ||
          (activeBefore !== null && row.state !== 'active' && row.lastActivityAt < activeBefore),
      )
      .filter((row) => !this.hasOpenTurns(row.id))
      .slice(0, limit);
  }

  expiredBefore(time: number, limit: number): string[] {
    return this.byState
      .of('expired')
      .filter(({ stateChangedAt }) => stateChangedAt !== null && stateChangedAt < time)
      .slice(0, limit)
      .map(({ id }) => id);
  }

  private matching(filter: SessionFilter): SessionRow[] {
    const { userId, workspaceId, states, surfaceId, activeAfter, activeBefore, after } = filter;
    const candidates = userId === undefined ? [...this.rows.values()] : this.byUser.of(userId);
    return candidates.filter(
      (row) =>
        (workspaceId === undefined || row.workspaceId === workspaceId) &&
        (states === undefined || states.includes(row.state)) &&
        (surfaceId === undefined || (JSON.parse(row.surfaces) as string[]).includes(surfaceId)) &&
        (activeAfter === undefined || row.lastActivityAt > activeAfter) &&
        (activeBefore === undefined || row.lastActivityAt < activeBefore) &&
        (after === undefined || compareSessions(after, toCursor(row)) < 0),
    );
  }

  protected override added(row: SessionRow): void {
    this.byUser.add(row.userId, row);
    this.byState.add(row.state, row);
  }

  protected override removed(row: SessionRow): void {
    this.byUser.remove(row.userId, row);
    this.byState.remove(row.state, row);
  }
}

const toCursor = (row: SessionRow): { lastActivityAt: string; createdAt: string; id: string } => ({
  lastActivityAt: iso(row.lastActivityAt),
  createdAt: iso(row.createdAt),
  id: row.id,
});

const byActivity = (a: SessionRow, b: SessionRow): number => compareSessions(toCursor(a), toCursor(b));

export class MemoryLanes extends MemoryTable<LaneRow, string> implements LaneTable {
  /** Only lanes that somebody must look at some day: idle ones cost nothing here. */
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

  protected override added(row: LaneRow): void {
    if (row.attentionAt !== null) this.attended.add(row.sessionId);
  }

  protected override removed(row: LaneRow): void {
    this.attended.delete(row.sessionId);
  }
}

export class MemoryTurns extends MemoryTable<TurnRow, string> implements TurnTable {
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

  select(sessionId: string, statuses: readonly TurnStatus[] | null, after: number, limit: number): TurnRow[] {
    if (statuses === null) return [...this.all.slice(sessionId, after + 1, limit)];
    const turns = statuses.some(isTerminal) ? this.all : this.opened;
    return turns
      .slice(sessionId, after + 1, Infinity)
      .filter((row) => statuses.includes(row.status))
      .slice(0, limit);
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

export class MemorySteps extends MemoryTable<StepRow, Omit<StepRow, 'value'>> implements StepTable {
  private readonly byTurn = new SetIndex<StepRow>();

  constructor(journal: Journal) {
    super(journal, (key) => joined(key.turnId, key.iteration, key.intent, key.name, key.occurrence));
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

export class MemoryCheckpoints
  extends MemoryTable<CheckpointRow, Pick<CheckpointRow, 'orchestrator' | 'sessionId' | 'turnIndex'>>
  implements CheckpointTable
{
  private readonly byIndex = new GroupIndex<CheckpointRow>((row) => row.turnIndex);
  private readonly bySession = new SetIndex<CheckpointRow>();

  constructor(journal: Journal) {
    super(journal, (key) => joined(key.orchestrator, key.sessionId, key.turnIndex));
  }

  latest(orchestrator: string, sessionId: string): CheckpointRow | undefined {
    return this.byIndex.of(joined(orchestrator, sessionId)).at(-1);
  }

  select(orchestrator: string, sessionId: string, before: number, limit: number): CheckpointRow[] {
    return this.byIndex
      .of(joined(orchestrator, sessionId))
      .filter((row) => row.turnIndex < before)
      .reverse()
      .slice(0, limit);
  }

  sessions(orchestrator: string, prefix: string, after: string, limit: number): string[] {
    const ids = new Set<string>();
    for (const row of this.rows.values()) {
      if (row.orchestrator === orchestrator && row.sessionId.startsWith(prefix)) ids.add(row.sessionId);
    }
    return [...ids]
      .filter((id) => id > after)
      .sort()
      .slice(0, limit);
  }

  deleteBefore(orchestrator: string, sessionId: string, before: number): number {
    const gone: CheckpointRow[] = [];
    // Pruning removes one row a turn; looking at the rows that stay would cost the history.
    for (const row of this.byIndex.of(joined(orchestrator, sessionId))) {
      if (row.turnIndex >= before) break;
      gone.push(row);
    }
    for (const row of gone) this.delete(row);
    return gone.length;
  }

  ofSession(sessionId: string): CheckpointRow[] {
    return this.bySession.of(sessionId);
  }

  protected override added(row: CheckpointRow): void {
    this.byIndex.add(joined(row.orchestrator, row.sessionId), row);
    this.bySession.add(row.sessionId, row);
  }

  protected override removed(row: CheckpointRow): void {
    this.byIndex.remove(joined(row.orchestrator, row.sessionId), row);
    this.bySession.remove(row.sessionId, row);
  }
}

export class MemoryMessages
  extends MemoryTable<MessageRow, Pick<MessageRow, 'sessionId' | 'position'>>
  implements MessageTable
{
  private readonly log = new GroupIndex<MessageRow>((row) => row.position);

  constructor(journal: Journal) {
    super(journal, (key) => joined(key.sessionId, key.position));
  }

  lastPosition(sessionId: string): number {
    return this.log.of(sessionId).at(-1)?.position ?? 0;
  }

  select(sessionId: string, after: number, limit: number): MessageRow[] {
    return [...this.log.slice(sessionId, after + 1, limit)];
  }

  ofSession(sessionId: string): readonly MessageRow[] {
    return [...this.log.of(sessionId)];
  }

  protected override added(row: MessageRow): void {
    this.log.add(row.sessionId, row);
  }

  protected override removed(row: MessageRow): void {
    this.log.remove(row.sessionId, row);
  }
}

export class MemoryDocuments extends MemoryTable<DocumentRow, StateAddress> implements DocumentTable {
  private readonly bySession = new SetIndex<DocumentRow>();

  constructor(journal: Journal) {
    super(journal, (key) => joined(key.namespace, key.scope, key.sessionId, key.key));
  }

  deleteExpired(now: number, limit: number): number {
    const expired = [...this.rows.values()]
      .filter((row) => row.expiresAt !== null && row.expiresAt <= now)
      .slice(0, limit);
    for (const row of expired) this.delete(row);
    return expired.length;
  }

  ofSession(sessionId: string): DocumentRow[] {
    return this.bySession.of(sessionId);
  }

  protected override added(row: DocumentRow): void {
    this.bySession.add(row.sessionId, row);
  }

  protected override removed(row: DocumentRow): void {
    this.bySession.remove(row.sessionId, row);
  }
}
