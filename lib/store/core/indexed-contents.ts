import { type StateAddress, type StateQuery, type StateSelection } from '../../ledger/state.store.js';
import { IndexedTable, take } from './indexed-table.js';
import { type CheckpointRow, type DocumentRow, type MessageRow } from './rows.js';
import { compareKeys, type TableTransaction } from './table-database.js';
import { type CheckpointTable, type DocumentTable, type MessageTable } from './tables.js';

/** Sorts after every character that an id may have. */
const AFTER_IDS = '\u007f';

export class IndexedCheckpoints
  extends IndexedTable<CheckpointRow, Pick<CheckpointRow, 'orchestrator' | 'sessionId' | 'turnIndex'>>
  implements CheckpointTable
{
  constructor(tx: TableTransaction) {
    super(tx, 'checkpoint');
  }

  latest(orchestrator: string, sessionId: string): CheckpointRow | undefined {
    return this.first('session', [sessionId, orchestrator], { reverse: true });
  }

  lastIndex(orchestrator: string, sessionId: string): number | undefined {
    return this.latest(orchestrator, sessionId)?.turnIndex;
  }

  select(orchestrator: string, sessionId: string, before: number, limit: number): CheckpointRow[] {
    const range = { before: [before], reverse: true, limit };
    return take(this.scan('session', [sessionId, orchestrator], range), limit);
  }

  sessions(orchestrator: string, prefix: string, after: string, limit: number): string[] {
    // The lower bound is exclusive, and a session may have the prefix as its id.
    const isPrefixFound = prefix > after && this.first('primary', [orchestrator, prefix]) !== undefined;
    const range = { after: [prefix > after ? prefix : after], before: [`${prefix}${AFTER_IDS}`] };
    const found = take(this.distinct('primary', [orchestrator], 'sessionId', range), limit);
    return (isPrefixFound ? [prefix, ...found] : found).slice(0, limit);
  }

  orchestrators(sessionId: string): string[] {
    return [...this.distinct('session', [sessionId], 'orchestrator')];
  }

  deleteBefore(orchestrator: string, sessionId: string, before: number): number {
    return this.deleteAll([...this.scan('session', [sessionId, orchestrator], { before: [before] })]);
  }
}

export class IndexedMessages
  extends IndexedTable<MessageRow, Pick<MessageRow, 'sessionId' | 'position'>>
  implements MessageTable
{
  constructor(tx: TableTransaction) {
    super(tx, 'message');
  }

  lastPosition(sessionId: string): number {
    return this.first('primary', [sessionId], { reverse: true })?.position ?? 0;
  }

  select(sessionId: string, after: number, limit: number): MessageRow[] {
    return take(this.scan('primary', [sessionId], { after: [after], limit }), limit);
  }

  sessions(after: string, limit: number): string[] {
    return take(this.distinct('primary', [], 'sessionId', { after: [after] }), limit);
  }

  clear(sessionId: string): number {
    return this.deleteAll(this.all('primary', [sessionId]));
  }
}

export class IndexedDocuments extends IndexedTable<DocumentRow, StateAddress> implements DocumentTable {
  constructor(tx: TableTransaction) {
    super(tx, 'document');
  }

  expect(): void {
    // The transaction reads each row on demand.
  }

  getAll(addresses: readonly StateAddress[]): (DocumentRow | undefined)[] {
    return addresses.map((address) => this.get(address));
  }

  select({ after, limit, ...selection }: StateQuery, now: number): DocumentRow[] {
    const { scope } = selection;
    if (!after) return take(this.live(selection, now), limit);
    if (scope === undefined) return take(this.live(selection, now, [after.scope, after.key]), limit);
    const order = compareKeys([scope], [after.scope]);
    return order < 0 ? [] : take(this.live(selection, now, order === 0 ? [after.key] : undefined), limit);
  }

  count(selection: StateSelection, now: number): number {
    let count = 0;
    for (const _row of this.live(selection, now)) count += 1;
    return count;
  }

  namespaces(sessionId: string): string[] {
    return [...this.distinct('primary', [sessionId], 'namespace')];
  }

  clear(sessionId: string, namespace: string, now: number): number {
    const live = this.count({ sessionId, namespace }, now);
    this.deleteAll(this.all('primary', [sessionId, namespace]));
    return live;
  }

  deleteExpired(now: number, limit: number): number {
    return this.deleteAll(take(this.scan('expiry', [], { before: [now + 1], limit }), limit));
  }

  deleteIdle(namespace: string, keep: number, now: number, limit: number): number {
    const live = this.all('access', [namespace]).filter((row) => isLive(row, now));
    return this.deleteAll(live.slice(0, Math.min(limit, Math.max(0, live.length - keep))));
  }

  private *live(
    { sessionId, namespace, scope }: StateSelection,
    now: number,
    after?: readonly string[],
  ): Generator<DocumentRow> {
    const prefix = scope === undefined ? [sessionId, namespace] : [sessionId, namespace, scope];
    for (const row of this.scan('primary', prefix, after ? { after } : {})) if (isLive(row, now)) yield row;
  }
}

function isLive({ expiresAt }: DocumentRow, now: number): boolean {
  return expiresAt === null || expiresAt > now;
}
