import { type StateAddress, type StateQuery, type StateSelection } from '../../ledger/state.store.js';
import { type CheckpointRow, type DocumentRow, type MessageRow } from '../core/rows.js';
import { type CheckpointTable, type DocumentTable, type MessageTable } from '../core/tables.js';
import { GroupIndex, joined, type Journal, MemoryTable, SetIndex } from './memory-table.js';

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

  lastIndex(orchestrator: string, sessionId: string): number | undefined {
    return this.latest(orchestrator, sessionId)?.turnIndex;
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

  orchestrators(sessionId: string): string[] {
    return [...new Set(this.ofSession(sessionId).map(({ orchestrator }) => orchestrator))];
  }

  deleteBefore(orchestrator: string, sessionId: string, before: number): number {
    const gone: CheckpointRow[] = [];
    // Pruning removes one row per turn. Checking the other rows would cost as much as the history is long.
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

  sessions(after: string, limit: number): string[] {
    return this.log
      .names()
      .filter((id) => id > after)
      .sort()
      .slice(0, limit);
  }

  clear(sessionId: string): number {
    const rows = this.ofSession(sessionId);
    for (const row of rows) this.delete(row);
    return rows.length;
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
  private readonly byAccess = new GroupIndex<DocumentRow>((row) => row.accessedAt);

  constructor(journal: Journal) {
    super(journal, (key) => joined(key.namespace, key.scope, key.sessionId, key.key));
  }

  expect(): void {
    // All rows are in memory.
  }

  getAll(addresses: readonly StateAddress[]): (DocumentRow | undefined)[] {
    return addresses.map((address) => this.get(address));
  }

  select({ after, limit, ...selection }: StateQuery, now: number): DocumentRow[] {
    return this.live(selection, now)
      .filter((row) => !after || compareByPlace(row, after) > 0)
      .sort(compareByPlace)
      .slice(0, limit);
  }

  count(selection: StateSelection, now: number): number {
    return this.live(selection, now).length;
  }

  namespaces(sessionId: string): string[] {
    return [...new Set(this.ofSession(sessionId).map(({ namespace }) => namespace))];
  }

  clear(sessionId: string, namespace: string, now: number): number {
    const live = this.count({ sessionId, namespace }, now);
    for (const row of this.ofSession(sessionId)) if (row.namespace === namespace) this.delete(row);
    return live;
  }

  deleteExpired(now: number, limit: number): number {
    const expired = [...this.rows.values()]
      .filter((row) => row.expiresAt !== null && row.expiresAt <= now)
      .slice(0, limit);
    for (const row of expired) this.delete(row);
    return expired.length;
  }

  deleteIdle(namespace: string, keep: number, now: number, limit: number): number {
    const live = this.byAccess.of(namespace).filter(({ expiresAt }) => expiresAt === null || expiresAt > now);
    const idle = live.slice(0, Math.min(limit, Math.max(0, live.length - keep)));
    for (const row of idle) this.delete(row);
    return idle.length;
  }

  ofSession(sessionId: string): DocumentRow[] {
    return this.bySession.of(sessionId);
  }

  private live({ sessionId, namespace, scope }: StateSelection, now: number): DocumentRow[] {
    return this.ofSession(sessionId).filter(
      (row) =>
        row.namespace === namespace &&
        (scope === undefined || row.scope === scope) &&
        (row.expiresAt === null || row.expiresAt > now),
    );
  }

  protected override added(row: DocumentRow): void {
    this.bySession.add(row.sessionId, row);
    this.byAccess.add(row.namespace, row);
  }

  protected override removed(row: DocumentRow): void {
    this.bySession.remove(row.sessionId, row);
    this.byAccess.remove(row.namespace, row);
  }
}

/** Compares like stores with UTF-8. JavaScript compares UTF-16 instead. */
function compareByPlace(a: Pick<DocumentRow, 'scope' | 'key'>, b: Pick<DocumentRow, 'scope' | 'key'>): number {
  return (
    Buffer.compare(Buffer.from(a.scope), Buffer.from(b.scope)) || Buffer.compare(Buffer.from(a.key), Buffer.from(b.key))
  );
}
