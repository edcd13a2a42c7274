import { type SignalRow, type StepRow, type StepRowKey, type TurnRow } from '../core/rows.js';
import { type SignalTable, type StepTable, type TurnTable } from '../core/tables.js';
import { MemorySignals, MemorySteps, MemoryTurns } from './memory-turns.js';
import { type TurnSelection } from '../core/turn-selection.js';
import { positionsOf } from '../sql/turn-positions.js';
import { LoadedTable } from './loaded-table.js';
import { places, type Query, statement } from './statement.js';
import { SQL } from './tables-sql.js';
import { fact, type Lock, type SessionTerm, type Unit } from './unit.js';

/** The number of open turns to load first: the head, and the turn that becomes the head when the work settles it. */
const FIRST = 2;
/**
 * The name of the settled turns to delete, as loaded data of the unit. It does not contain the time, which advances
 * while data is loaded: each run of the work would read other turns.
 */
const SETTLED = 'settled turns';
/** The name of the turns whose events have expired, as loaded data; see {@link SETTLED}. */
const EXPIRED = 'expired events';

/**
 * The turns of a {@link Unit}. `rows` are the loaded turns with the changes of the work. A method answers from them if
 * enough is loaded. Otherwise it throws NotLoaded with the queries. After these have run, the work calls it again.
 *
 * The open turns of a lane are loaded from its head on, as far as needed. For example, `head` loads two of 50 queued
 * turns, and a later `open` loads the other 48.
 */
export class LoadedTurns extends LoadedTable<TurnRow, string> implements TurnTable {
  /** The ids of turns that the work asked for and that did not exist, see {@link arrived}. */
  private readonly absent = new Set<string>();

  constructor(
    unit: Unit,
    protected override readonly rows = new MemoryTurns(unit.journal),
  ) {
    super(unit, SQL.turn, rows, { lockOf: (turn) => ({ turn }) });
  }

  override get(turnId: string): TurnRow | undefined {
    const row = super.get(turnId);
    if (!row) this.absent.add(turnId);
    return row;
  }

  /**
   * In a write, the lock of the turn has set `@session`: to its session, or to NULL if the turn did not exist. A turn
   * that was accepted since then is not found, because its lane is not locked.
   */
  override byKey(turnId: string): Query {
    if (!this.unit.writes) return super.byKey(turnId);
    return {
      ...SQL.turn.select('WHERE id = ? AND session_id = @session', turnId),
      take: ({ rows }) => this.learnRow(turnId, rows as unknown as TurnRow[]),
    };
  }

  /**
   * Reads turns again that did not exist before their lane was locked. For example, `accept` first looks up the id of a
   * new turn, and another transaction can accept a turn with this id before the lane is locked.
   */
  arrived(sessionId: string): Query[] {
    if (this.absent.size === 0) return [];
    const ids = [...this.absent];
    const query = SQL.turn.select(`WHERE id IN (${places(ids)}) AND session_id = ?`, ...ids, sessionId);
    return [{ ...query, take: ({ rows }) => this.put(rows as unknown as TurnRow[]) }];
  }

  /** Returns the first loaded open turn, if all open turns up to it are loaded. Otherwise loads the next ones. */
  head(sessionId: string): TurnRow | undefined {
    const through = this.knownThrough(sessionId);
    const first = this.rows.head(sessionId);
    if (through < Infinity && !(first && first.position <= through)) this.load(sessionId, through, FIRST);
    return first;
  }

  open(sessionId: string): TurnRow[] {
    const through = this.knownThrough(sessionId);
    if (through < Infinity) this.load(sessionId, through, Infinity);
    return this.rows.open(sessionId);
  }

  byIdempotencyKey(sessionId: string, key: string): TurnRow | undefined {
    const name = fact('key', sessionId, key);
    this.unit.recall(name, () => {
      const take: Query['take'] = ({ rows }) => {
        this.put(rows as unknown as TurnRow[]);
        this.unit.learn(name);
      };
      const byKey = SQL.turn.select('WHERE session_id = ? AND idempotency_key = ?', sessionId, key);
      return { lock: { session: sessionId }, queries: [{ ...byKey, take }] };
    });
    return this.rows.byIdempotencyKey(sessionId, key);
  }

  select(selection: TurnSelection, limit: number): TurnRow[] {
    const { sessionId, statuses, after } = selection;
    const name = fact('turns', JSON.stringify(selection), limit);
    this.unit.recall(name, () => {
      const { condition, order } = positionsOf(selection, '?');
      const filter = statuses === null ? '' : `AND status IN (${places(statuses)})`;
      const open = selection.isOpen ? 'AND is_open = 1' : '';
      const list = SQL.turn.select(
        `WHERE session_id = ? AND ${condition} ${filter} ${open} ${order} LIMIT ?`,
        sessionId,
        after,
        ...(statuses ?? []),
        limit,
      );
      const take: Query['take'] = ({ rows }) => {
        this.put(rows as unknown as TurnRow[]);
        this.unit.learn(name);
      };
      return { lock: { session: sessionId }, queries: [{ ...list, take }] };
    });
    return this.rows.select(selection, limit);
  }

  /** Reads the first open turns of a session when its lane is locked, because most work needs them. */
  firstOpen(session: SessionTerm): Query {
    const first = `WHERE session_id = ${session.sql} AND is_open = 1 ORDER BY position LIMIT ${FIRST}`;
    return {
      ...SQL.turn.select(first, ...session.values),
      take: ({ rows }) => {
        const id = session.id();
        if (id !== undefined) this.learnOpen(id, rows as unknown as TurnRow[], FIRST);
      },
    };
  }

  /** Reads all open turns of several sessions. */
  openOf(sessionIds: readonly string[]): Query[] {
    if (sessionIds.length === 0) return [];
    const open = SQL.turn.select(`WHERE session_id IN (${places(sessionIds)}) AND is_open = 1`, ...sessionIds);
    return [
      {
        ...open,
        take: ({ rows }) => {
          this.put(rows as unknown as TurnRow[]);
          for (const sessionId of sessionIds) this.unit.learn(fact('open', sessionId), Infinity);
        },
      },
    ];
  }

  /** Deletes at most `limit` settled turns that no other transaction has locked. They need not be loaded. */
  deleteSettled(before: number, limit: number): number {
    const ids = this.unit.recall<readonly string[]>(SETTLED, () => {
      const old = statement(
        `SELECT id FROM {turn} WHERE settled_at < ? ORDER BY settled_at, id LIMIT ? ${this.unit.skipLocked}`,
        before,
        limit,
      );
      const take: Query['take'] = ({ rows }) => {
        const found = rows.map(({ id }) => id as string);
        this.unit.learn(SETTLED, found);
      };
      return { queries: [{ ...old, take }] };
    });
    if (ids.length === 0) return 0;
    const remove = (table: string, column: string): void => {
      this.unit.bulk.push(statement(`DELETE FROM {${table}} WHERE ${column} IN (${places(ids)})`, ...ids));
    };
    remove('step', 'turn_id');
    remove('signal', 'turn_id');
    remove('turn_event', 'turn_id');
    remove('turn', 'id');
    return ids.length;
  }

  /** Deletes the expired events of at most `limit` turns that no other transaction has locked. */
  deleteExpiredEvents(now: number, limit: number): number {
    const ids = this.unit.recall<readonly string[]>(EXPIRED, () => {
      const over = statement(
        `SELECT id FROM {turn} WHERE events_until <= ? ORDER BY events_until, id LIMIT ? ${this.unit.skipLocked}`,
        now,
        limit,
      );
      const take: Query['take'] = ({ rows }) => {
        const found = rows.map(({ id }) => id as string);
        this.unit.learn(EXPIRED, found);
      };
      return { queries: [{ ...over, take }] };
    });
    if (ids.length === 0) return 0;
    const list = places(ids);
    this.unit.bulk.push(
      statement(`DELETE FROM {turn_event} WHERE turn_id IN (${list})`, ...ids),
      statement(`UPDATE {turn} SET event_ttl = NULL WHERE id IN (${list})`, ...ids),
    );
    return ids.length;
  }

  /** Forgets the turns of a session that the work deletes. */
  removed(sessionId: string): void {
    this.drop(this.rows.ofSession(sessionId));
  }

  /**
   * Returns the first loaded open turn that the work can claim or has claimed: one that is queued or waiting, or that
   * it has changed to running. A turn that was running before belongs to another claim.
   */
  next(sessionId: string): TurnRow | undefined {
    return this.rows.open(sessionId).find(({ id, status }) => status !== 'running' || this.hasChanged(id));
  }

  /** Returns the lock for the steps and signals of a turn; `undefined` if the transaction already locks its session. */
  lockOf(turnId: string): Lock | undefined {
    const sessionId = this.rows.get(turnId)?.sessionId;
    return sessionId !== undefined && this.unit.locked.has(sessionId) ? undefined : { turn: turnId };
  }

  /** Returns the position through which all open turns of a lane are loaded: 0 if none are, Infinity if all are. */
  private knownThrough(sessionId: string): number {
    return this.unit.learned<number>(fact('open', sessionId)) ?? 0;
  }

  /** Loads the open turns after a position. The lock of the session loads the {@link FIRST} ones itself. */
  private load(sessionId: string, through: number, limit: number): never {
    const rest = `WHERE session_id = ? AND is_open = 1 AND position > ? ORDER BY position LIMIT ?`;
    const take: Query['take'] = ({ rows }) => this.learnOpen(sessionId, rows as unknown as TurnRow[], limit);
    const query = { ...SQL.turn.select(rest, sessionId, through, Math.min(limit, Number.MAX_SAFE_INTEGER)), take };
    return this.unit.ask({ lock: { session: sessionId }, queries: [query], bundled: limit === FIRST });
  }

  /** Adds open turns that follow the known ones. Fewer rows than the limit mean that no others exist. */
  private learnOpen(sessionId: string, rows: readonly TurnRow[], limit: number): void {
    this.put(rows);
    this.unit.learn(fact('open', sessionId), rows.length < limit ? Infinity : rows[rows.length - 1].position);
  }
}

/** The steps of turns. They are locked with the lane of their turn. */
export class LoadedSteps extends LoadedTable<StepRow, StepRowKey> implements StepTable {
  constructor(
    unit: Unit,
    turns: LoadedTurns,
    protected override readonly rows = new MemorySteps(unit.journal),
  ) {
    super(unit, SQL.step, rows, { lockOf: ({ turnId }) => turns.lockOf(turnId) });
  }

  ofTurn(turnId: string): StepRow[] {
    this.unit.recall(fact('steps', turnId), () => ({ queries: [this.ofTurns([turnId])] }));
    return this.rows.ofTurn(turnId);
  }

  ofTurns(turnIds: readonly string[]): Query {
    return {
      ...SQL.step.select(`WHERE turn_id IN (${places(turnIds)})`, ...turnIds),
      take: ({ rows }) => {
        this.put(rows as unknown as StepRow[]);
        for (const turnId of turnIds) this.unit.learn(fact('steps', turnId));
      },
    };
  }
}

/** The received signals of turns. They are locked with the lane of their turn. */
export class LoadedSignals extends LoadedTable<SignalRow, Pick<SignalRow, 'turnId' | 'name'>> implements SignalTable {
  constructor(
    unit: Unit,
    turns: LoadedTurns,
    protected override readonly rows = new MemorySignals(unit.journal),
  ) {
    super(unit, SQL.signal, rows, { lockOf: ({ turnId }) => turns.lockOf(turnId) });
  }

  ofTurn(turnId: string): SignalRow[] {
    this.unit.recall(fact('signals', turnId), () => {
      const take: Query['take'] = ({ rows }) => {
        this.put(rows as unknown as SignalRow[]);
        this.unit.learn(fact('signals', turnId));
      };
      return { queries: [{ ...SQL.signal.select('WHERE turn_id = ?', turnId), take }] };
    });
    return this.rows.ofTurn(turnId);
  }
}
