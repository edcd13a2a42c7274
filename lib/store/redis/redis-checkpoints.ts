import { type CheckpointPage, CheckpointStore, type KeepCheckpoints } from '../../ledger/checkpoint.store.js';
import { type Checkpoint, type NewCheckpoint } from '../../ledger/checkpoint.js';
import { iso } from '../core/iso.js';
import { type RedisDatabase } from './redis-database.js';
import { checkpointOf, checkpointText, type StoredCheckpoint } from './redis-rows.js';
import { SCRIPTS } from './redis-scripts.js';

/** Stores checkpoints in Redis. */
export class RedisCheckpoints extends CheckpointStore {
  constructor(private readonly db: RedisDatabase) {
    super();
  }

  async load(orchestrator: string, sessionId: string, turnIndex?: number): Promise<Checkpoint | null> {
    const args = [orchestrator, sessionId, turnIndex ?? ''];
    const [stored] = await this.db.run<[StoredCheckpoint | null]>(SCRIPTS.loadCheckpoint, ...args);
    return stored && checkpointOf(orchestrator, sessionId, stored);
  }

  async append(checkpoint: NewCheckpoint, keep: KeepCheckpoints): Promise<Checkpoint> {
    const { orchestrator, sessionId, turnIndex } = checkpoint;
    const text = checkpointText(checkpoint);
    const [savedAt] = await this.db.run<[number]>(
      SCRIPTS.appendCheckpoint,
      orchestrator,
      sessionId,
      turnIndex,
      text,
      keep === 'all' ? '' : keep,
    );
    return { ...(JSON.parse(text) as NewCheckpoint), orchestrator, sessionId, savedAt: iso(savedAt) };
  }

  async history(orchestrator: string, sessionId: string, page: CheckpointPage = {}): Promise<Checkpoint[]> {
    const { before = '', limit = 50 } = page;
    const [history] = await this.db.run<[StoredCheckpoint[]]>(
      SCRIPTS.checkpointHistory,
      orchestrator,
      sessionId,
      before,
      limit,
    );
    return history.map((stored) => checkpointOf(orchestrator, sessionId, stored));
  }

  async list(orchestrator: string, page: { prefix?: string; after?: string; limit?: number } = {}): Promise<string[]> {
    const { prefix = '', after = '', limit = 100 } = page;
    const from = after >= prefix && after !== '' ? `(${after}` : `[${prefix}`;
    // DEL sorts after every character of an id.
    const [ids] = await this.db.run<[string[]]>(
      SCRIPTS.checkpointedSessions,
      orchestrator,
      from,
      `(${prefix}\u007f`,
      limit,
    );
    return ids;
  }

  async orchestrators(sessionId: string): Promise<string[]> {
    const [names] = await this.db.run<[string[]]>(SCRIPTS.checkpointedBy, sessionId);
    return names;
  }

  async prune(orchestrator: string, sessionId: string, keep: number): Promise<number> {
    const [removed] = await this.db.run<[number]>(SCRIPTS.pruneCheckpoints, orchestrator, sessionId, keep);
    return removed;
  }

  async delete(orchestrator: string, sessionId: string): Promise<void> {
    await this.db.run(SCRIPTS.deleteCheckpoints, orchestrator, sessionId);
  }
}
