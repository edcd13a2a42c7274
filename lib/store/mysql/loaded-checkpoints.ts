import { type CheckpointRow } from '../core/rows.js';
import { type CheckpointTable } from '../core/tables.js';
import { MemoryCheckpoints } from './memory-contents.js';
import { LoadedTable } from './loaded-table.js';
import { type Query, statement } from './statement.js';
import { SQL } from './tables-sql.js';
import { fact, type Unit } from './unit.js';

type Key = Pick<CheckpointRow, 'orchestrator' | 'sessionId' | 'turnIndex'>;

/** A session id is ASCII, so no id with a prefix reaches beyond this. */
const BEYOND = '\u007f';

export class LoadedCheckpoints extends LoadedTable<CheckpointRow, Key> implements CheckpointTable {
  /** The lowest remaining index of a run that the work has pruned. */
  private readonly floors = new Map<string, number>();

  constructor(
    unit: Unit,
    /** Returns queries for data that is likely to be read after a session's latest checkpoint. */
    private readonly alongside: (sessionId: string) => readonly Query[],
    protected override readonly rows = new MemoryCheckpoints(unit.journal),
  ) {
    super(unit, SQL.checkpoint, rows, { lockOf: ({ sessionId }) => ({ session: sessionId }) });
  }

  latest(orchestrator: string, sessionId: string): CheckpointRow | undefined {
    this.lowest(orchestrator, sessionId);
    return this.rows.latest(orchestrator, sessionId);
  }

  lastIndex(orchestrator: string, sessionId: string): number | undefined {
    return this.latest(orchestrator, sessionId)?.turnIndex;
  }

  select(orchestrator: string, sessionId: string, before: number, limit: number): CheckpointRow[] {
    const name = fact('checkpoints', orchestrator, sessionId, before, limit);
    this.unit.recall(name, () => {
      const page = 'WHERE orchestrator = ? AND session_id = ? AND turn_index < ? ORDER BY turn_index DESC LIMIT ?';
      const take: Query['take'] = ({ rows }) => {
        this.put(rows as unknown as CheckpointRow[]);
        this.unit.learn(name);
      };
      const query = { ...SQL.checkpoint.select(page, orchestrator, sessionId, before, limit), take };
      return { lock: { session: sessionId }, queries: [query] };
    });
    return this.rows.select(orchestrator, sessionId, before, limit);
  }

  sessions(orchestrator: string, prefix: string, after: string, limit: number): string[] {
    // A range instead of LIKE: it uses the primary key, and the prefix is not a pattern.
    const list = statement(
      `SELECT DISTINCT session_id AS name FROM {checkpoint}
       WHERE orchestrator = ? AND session_id > ? AND session_id >= ? AND session_id < ?
       ORDER BY session_id LIMIT ?`,
      ...[orchestrator, after, prefix, `${prefix}${BEYOND}`, limit],
    );
    return this.namesIn(fact('checkpointed', orchestrator, prefix, after, limit), list);
  }

  orchestrators(sessionId: string): string[] {
    const list = statement('SELECT DISTINCT orchestrator AS name FROM {checkpoint} WHERE session_id = ?', sessionId);
    return this.namesIn(fact('orchestrators', sessionId), list);
  }

  /** Indices are contiguous, so deleted rows are counted without reading them. */
  deleteBefore(orchestrator: string, sessionId: string, before: number): number {
    const newest = this.lastIndex(orchestrator, sessionId);
    if (newest === undefined) return 0;
    const lowest = this.lowest(orchestrator, sessionId) ?? newest;
    const end = Math.min(before, newest + 1);
    if (end <= lowest) return 0;
    this.rows.deleteBefore(orchestrator, sessionId, end);
    this.floors.set(fact(orchestrator, sessionId), end);
    this.unit.bulk.push(
      statement(
        'DELETE FROM {checkpoint} WHERE orchestrator = ? AND session_id = ? AND turn_index < ?',
        ...[orchestrator, sessionId, end],
      ),
    );
    return end - lowest;
  }

  override reset(): void {
    super.reset();
    this.floors.clear();
  }

  removed(sessionId: string): void {
    this.drop(this.rows.ofSession(sessionId));
  }

  private lowest(orchestrator: string, sessionId: string): number | null {
    const name = fact('lowest', orchestrator, sessionId);
    const stored = this.unit.recall<number | null>(name, () => ({
      lock: { session: sessionId },
      queries: [...this.ends(name, orchestrator, sessionId), ...this.alongside(sessionId)],
    }));
    return this.floors.get(fact(orchestrator, sessionId)) ?? stored;
  }

  private ends(name: string, ...of: [orchestrator: string, sessionId: string]): Query[] {
    const where = 'WHERE orchestrator = ? AND session_id = ?';
    return [
      {
        ...SQL.checkpoint.select(`${where} ORDER BY turn_index DESC LIMIT 1`, ...of),
        take: ({ rows }) => {
          this.put(rows as unknown as CheckpointRow[]);
          this.unit.learn(name, null);
        },
      },
      ...(this.unit.writes
        ? [
            {
              ...statement(`SELECT MIN(turn_index) AS lowest FROM {checkpoint} ${where}`, ...of),
              take: ({ rows: [row] }) => this.unit.learn(name, row.lowest),
            } satisfies Query,
          ]
        : []),
    ];
  }
}
