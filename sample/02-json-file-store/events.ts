import { type TurnEvent, type TurnEventBatch, type TurnEventLog, type TurnHold } from 'nestjs-agent-sessions';
import { held } from './lane.js';
import { type Store } from './store.js';
import { lastOffset } from './tables.js';

export const eventsPort = (store: Store): TurnEventLog => ({
  append: (hold, batch, ttlMs) => store.commit(() => append(store, hold, batch, ttlMs)),
  read: (turnId, after, limit) => store.read(() => read(store, turnId, after, limit)),
  last: (turnId) => store.read(() => last(store, turnId)),
  deleteExpired: (limit) => store.commit(() => deleteExpired(store, limit)),
});

function append(store: Store, hold: TurnHold, { number, events, restart }: TurnEventBatch, ttlMs: number): number {
  const { row } = held(store, hold);
  const { turnId, fence } = hold;
  const newest = store.batches.last('turn', [turnId]);
  const offset = newest ? lastOffset(newest) : 0;
  if (newest?.fence === fence && newest.number >= number) return offset;
  const added = newest && newest.fence !== fence ? [restart, ...events] : events;
  const numbered = added.map((event, index) => ({ ...event, offset: offset + index + 1 }));
  store.batches.put({ turnId, fence, number, events: numbered });
  if (row.eventsTtlMs !== ttlMs) store.turns.put({ ...row, eventsTtlMs: ttlMs });
  return offset + added.length;
}

function read(store: Store, turnId: string, after: number, limit: number): TurnEvent[] {
  const found: TurnEvent[] = [];
  for (const { events } of store.batches.by('turn', [turnId], [turnId, after + 1])) {
    if (found.length >= limit) break;
    found.push(...events.filter(({ offset }) => offset > after));
  }
  return found.slice(0, limit);
}

function last(store: Store, turnId: string): number {
  const newest = store.batches.last('turn', [turnId]);
  return newest ? lastOffset(newest) : 0;
}

function deleteExpired(store: Store, limit: number): number {
  let turns = 0;
  for (const row of store.turns.by('expiry', [])) {
    if (turns >= limit || Date.parse(row.turn.settledAt!) + row.eventsTtlMs! > store.now) break;
    for (const batch of store.batches.by('turn', [row.turn.id])) store.batches.delete(batch);
    store.turns.put({ ...row, eventsTtlMs: undefined });
    turns += 1;
  }
  return turns;
}
