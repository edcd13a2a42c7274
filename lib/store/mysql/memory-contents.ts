import { type StateAddress, type StateQuery } from '../../ledger/state.store.js';
import { type CheckpointRow, type DocumentRow, type MessageRow } from '../core/rows.js';
import { GroupIndex, joined, type Journal, MemoryTable, SetIndex } from './memory-table.js';

export class MemoryCheckpoints extends MemoryTable<
  CheckpointRow,
  Pick<CheckpointRow, 'orchestrator' | 'sessionId' | 'turnIndex'>
> {
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

export class MemoryMessages extends MemoryTable<MessageRow, Pick<MessageRow, 'sessionId' | 'position'>> {
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

export class MemoryDocuments extends MemoryTable<DocumentRow, StateAddress> {
  private readonly bySession = new SetIndex<DocumentRow>();

  constructor(journal: Journal) {
    super(journal, (key) => joined(key.namespace, key.scope, key.sessionId, key.key));
  }

  select({ sessionId, namespace, scope, after, limit }: StateQuery, now: number): DocumentRow[] {
    return this.ofSession(sessionId)
      .filter(
        (row) =>
          row.namespace === namespace &&
          (scope === undefined || row.scope === scope) &&
          (row.expiresAt === null || row.expiresAt > now) &&
          (!after || compareByPlace(row, after) > 0),
      )
      .sort(compareByPlace)
      .slice(0, limit);
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

/** Compares like stores with UTF-8. JavaScript compares UTF-16 instead. */
function compareByPlace(a: Pick<DocumentRow, 'scope' | 'key'>, b: Pick<DocumentRow, 'scope' | 'key'>): number {
  return (
    Buffer.compare(Buffer.from(a.scope), Buffer.from(b.scope)) || Buffer.compare(Buffer.from(a.key), Buffer.from(b.key))
  );
}
