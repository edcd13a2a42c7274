import { type TurnSpending } from 'nestjs-agent-sessions';
import { appendTo } from './document-rows.js';
import { type Held } from './lane.js';
import { resetSince } from './reset-state.js';
import { type Store } from './store.js';

/** Records the tokens of a held turn. @returns the turn with them */
export function recordSpending(store: Store, own: Held, spending?: TurnSpending): Held {
  if (!spending) return own;
  const { usage, change } = spending;
  const { lane, row } = own;
  const { sessionId } = lane;
  if (change && resetSince(lane, row.epochs, [change.name.namespace]).length === 0) {
    appendTo(store, { ...change.name, sessionId }, change.append);
  }
  return { lane, row: store.turns.put({ ...row, turn: { ...row.turn, usage } }) };
}
