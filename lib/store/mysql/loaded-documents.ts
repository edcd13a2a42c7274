import { type StateAddress, type StateQuery, type StateSelection } from '../../ledger/state.store.js';
import { type DocumentRow } from '../core/rows.js';
import { type DocumentTable } from '../core/tables.js';
import { MemoryDocuments } from './memory-contents.js';
import { LoadedTable } from './loaded-table.js';
import { type Query, statement } from './statement.js';
import { SQL } from './tables-sql.js';
import { fact, type Unit } from './unit.js';

/** The name of the documents to delete in the unit of work. They are read once, because the clock advances. */
const IDLE = 'idle documents';

type Place = Pick<DocumentRow, keyof StateAddress | 'accessedAt'>;

/** The order of {@link LIVE}, which is a complete position in its index. */
const ORDER = ['accessed_at', 'session_id', 'scope', '`key`'];
const inOrder = (direction: 'ASC' | 'DESC'): string => ORDER.map((column) => `${column} ${direction}`).join(', ');

const LIVE = `
  SELECT namespace, scope, session_id AS sessionId, \`key\`, accessed_at AS accessedAt
  FROM {document} FORCE INDEX ({document_access!})
  WHERE namespace = ? AND (expires_at IS NULL OR expires_at > ?)`;

export class LoadedDocuments extends LoadedTable<DocumentRow, StateAddress> implements DocumentTable {
  private awaited: readonly StateAddress[] = [];

  constructor(
    unit: Unit,
    protected override readonly rows = new MemoryDocuments(unit.journal),
  ) {
    super(unit, SQL.document, rows, { lockOf: ({ sessionId }) => ({ session: sessionId }), rowLock: true });
  }

  override get(address: StateAddress): DocumentRow | undefined {
    const { unit } = this;
    const row = this.rows.get(address);
    if (row || unit.writes) return super.get(address);
    // The caller checks next whether the document has expired.
    unit.recall(this.factOf(address), () => ({ queries: [this.byKey(address), unit.clock()] }));
    return undefined;
  }

  expect(addresses: readonly StateAddress[]): void {
    this.awaited = addresses;
  }

  /** Loads the expected documents that are not loaded yet. */
  expected(): Query[] {
    return this.unknownOf(this.awaited).map((address) => this.byKey(address));
  }

  getAll(addresses: readonly StateAddress[]): (DocumentRow | undefined)[] {
    const unknown = this.unknownOf(addresses);
    if (unknown.length > 0) {
      const [{ sessionId: session }] = unknown;
      this.unit.ask({ lock: { session }, queries: unknown.map((address) => this.byKey(address)) });
    }
    return addresses.map((address) => this.rows.get(address));
  }

  select(query: StateQuery, now: number): DocumentRow[] {
    const { after, limit, ...selection } = query;
    const name = fact('documents', JSON.stringify(query));
    this.unit.recall(name, () => {
      const [live, values] = liveOf(selection, now);
      // An index supports neither a row comparison nor an order by a constant column.
      const order = selection.scope === undefined ? 'scope, `key`' : '`key`';
      const [behind, place] = after
        ? ['AND (scope > ? OR (scope = ? AND `key` > ?))', [after.scope, after.scope, after.key]]
        : ['', []];
      const page = SQL.document.select(`${live} ${behind} ORDER BY ${order} LIMIT ?`, ...values, ...place, limit);
      const take: Query['take'] = ({ rows }) => {
        this.put(rows as unknown as DocumentRow[]);
        this.unit.learn(name);
      };
      return { queries: [{ ...page, take }] };
    });
    return this.rows.select(query, now);
  }

  count(selection: StateSelection, now: number): number {
    const name = fact('document count', JSON.stringify(selection));
    return this.unit.recall<number>(name, () => {
      const [live, values] = liveOf(selection, now);
      const take: Query['take'] = ({ rows: [row] }) => this.unit.learn(name, Number(row.count));
      return { queries: [{ ...statement(`SELECT COUNT(*) AS count FROM {document} ${live}`, ...values), take }] };
    });
  }

  namespaces(sessionId: string): string[] {
    const list = statement('SELECT DISTINCT namespace AS name FROM {document} WHERE session_id = ?', sessionId);
    return this.namesIn(fact('namespaces', sessionId), list);
  }

  clear(sessionId: string, namespace: string, now: number): number {
    const live = this.count({ sessionId, namespace }, now);
    this.drop(this.rows.ofSession(sessionId).filter((row) => row.namespace === namespace));
    this.unit.bulk.push(
      statement('DELETE FROM {document} WHERE session_id = ? AND namespace = ?', sessionId, namespace),
    );
    return live;
  }

  /** Deletes while loading, because only the answer to the DELETE gives their number without reading them. */
  deleteExpired(now: number, limit: number): number {
    return this.unit.recall<number>('expired documents', () => {
      const take: Query['take'] = ({ affected }) => {
        this.unit.hasWritten ||= affected > 0;
        this.unit.learn('expired documents', affected);
      };
      const expired = 'DELETE FROM {document} WHERE expires_at <= ? ORDER BY expires_at LIMIT ?';
      return { queries: [{ ...statement(expired, now, limit), take }] };
    });
  }

  /** Deletes idle documents that no other transaction has locked. */
  deleteIdle(namespace: string, keep: number, now: number, limit: number): number {
    const idle = this.unit.recall<readonly StateAddress[]>(IDLE, () => {
      const last = statement(`${LIVE} ORDER BY ${inOrder('DESC')} LIMIT 1 OFFSET ?`, namespace, now, keep);
      const take: Query['take'] = ({ rows: [row] }) =>
        row ? [this.idleThrough(row as unknown as Place, namespace, now, limit)] : this.unit.learn(IDLE, []);
      return { queries: [{ ...last, take }] };
    });
    for (const address of idle) this.unit.bulk.push(this.sql.delete(address));
    return idle.length;
  }

  removed(sessionId: string): void {
    this.drop(this.rows.ofSession(sessionId));
  }

  override reset(): void {
    super.reset();
    this.awaited = [];
  }

  private unknownOf(addresses: readonly StateAddress[]): StateAddress[] {
    return addresses.filter((address) => !this.unit.knows(this.factOf(address)));
  }

  private idleThrough(
    { accessedAt, scope, sessionId, key }: Place,
    namespace: string,
    now: number,
    limit: number,
  ): Query {
    // An index is not used for the comparison of rows, so a comparison of the first column is added.
    const idle = statement(
      `${LIVE} AND accessed_at <= ? AND (${ORDER.join(', ')}) <= (?, ?, ?, ?)
       ORDER BY ${inOrder('ASC')} LIMIT ? ${this.unit.skipLocked}`,
      ...[namespace, now, accessedAt, accessedAt, sessionId, scope, key, limit],
    );
    return { ...idle, take: ({ rows }) => this.unit.learn(IDLE, rows) };
  }
}

function liveOf(
  { sessionId, namespace, scope }: StateSelection,
  now: number,
): [sql: string, values: (string | number)[]] {
  const live = 'WHERE session_id = ? AND namespace = ? AND (expires_at IS NULL OR expires_at > ?)';
  return scope === undefined
    ? [live, [sessionId, namespace, now]]
    : [`${live} AND scope = ?`, [sessionId, namespace, now, scope]];
}
