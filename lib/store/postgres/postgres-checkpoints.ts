import { type CheckpointPage, CheckpointStore, type KeepCheckpoints } from '../../ledger/checkpoint.store.js';
import { type Checkpoint, type NewCheckpoint } from '../../ledger/checkpoint.js';
import { toCheckpoint } from '../core/row-mapping.js';
import { type CheckpointRow } from '../core/rows.js';
import { type PostgresDatabase } from './postgres-database.js';
import { granted } from './postgres-refusals.js';
import { type SqlRow, toCheckpointArgs, toRow } from './postgres-rows.js';

/** Stores checkpoints in PostgreSQL. */
export class PostgresCheckpoints extends CheckpointStore {
  constructor(private readonly db: PostgresDatabase) {
    super();
  }

  async load(orchestrator: string, sessionId: string, turnIndex?: number): Promise<Checkpoint | null> {
    const found =
      turnIndex === undefined
        ? await this.select(orchestrator, sessionId, 'ORDER BY turn_index DESC LIMIT 1')
        : await this.select(orchestrator, sessionId, 'AND turn_index = $3', turnIndex);
    return found.at(0) ?? null;
  }

  async append(checkpoint: NewCheckpoint, keep: KeepCheckpoints): Promise<Checkpoint> {
    const args = { checkpoint: toCheckpointArgs(checkpoint), keep: keep === 'all' ? null : keep };
    return toCheckpointFromSql(granted(await this.db.call<SqlRow>('save_checkpoint_v1', args)));
  }

  history(orchestrator: string, sessionId: string, page: CheckpointPage = {}): Promise<Checkpoint[]> {
    const { before = Number.MAX_SAFE_INTEGER, limit = 50 } = page;
    const rest = 'AND turn_index < $3 ORDER BY turn_index DESC LIMIT $4';
    return this.select(orchestrator, sessionId, rest, before, limit);
  }

  /** Jumps from session to session in the primary key. The cost does not depend on the number of checkpoints. */
  async list(orchestrator: string, page: { prefix?: string; after?: string; limit?: number } = {}): Promise<string[]> {
    const { prefix = '', after = '', limit = 100 } = page;
    // A range instead of LIKE, because the prefix is not a pattern. DEL sorts after every character of an id.
    const rows = await this.db.query<{ id: string }>(
      `WITH RECURSIVE found (id) AS (
         (SELECT session_id FROM {checkpoint}
          WHERE orchestrator = $1 AND session_id > $2 AND session_id >= $3 AND session_id < $4
          ORDER BY session_id LIMIT 1)
         UNION ALL
         SELECT (SELECT session_id FROM {checkpoint}
                 WHERE orchestrator = $1 AND session_id > found.id AND session_id < $4
                 ORDER BY session_id LIMIT 1)
         FROM found WHERE found.id IS NOT NULL
       )
       SELECT id FROM found WHERE id IS NOT NULL LIMIT $5`,
      [orchestrator, after, prefix, `${prefix}\u007f`, limit],
    );
    return rows.map(({ id }) => id);
  }

  orchestrators(sessionId: string): Promise<string[]> {
    return this.db.names('checkpoint', 'orchestrator', sessionId);
  }

  prune(orchestrator: string, sessionId: string, keep: number): Promise<number> {
    return this.db.call('prune_checkpoints_v1', { orchestrator, session_id: sessionId, keep });
  }

  async delete(orchestrator: string, sessionId: string): Promise<void> {
    await this.prune(orchestrator, sessionId, 0);
  }

  private async select(
    orchestrator: string,
    sessionId: string,
    rest: string,
    ...values: readonly number[]
  ): Promise<Checkpoint[]> {
    const rows = await this.db.query<{ row: SqlRow }>(
      `SELECT row_to_json(checkpoint) AS row FROM {checkpoint} AS checkpoint
       WHERE orchestrator = $1 AND session_id = $2 ${rest}`,
      [orchestrator, sessionId, ...values],
    );
    return rows.map(({ row }) => toCheckpointFromSql(row));
  }
}

function toCheckpointFromSql(sql: SqlRow): Checkpoint {
  return toCheckpoint(toRow<CheckpointRow>(sql));
}
