import { toTurn } from '../core/row-mapping.js';
import { type TurnRow } from '../core/rows.js';
import { type Refusal, refusalError } from '../core/refusals.js';
import { type SqlRow, toRow } from './postgres-rows.js';

type SqlRefusal = Omit<Refusal, 'turn'> & { readonly turn?: SqlRow };

/** Returns the result of a function. @throws the typed error of a refusal */
export function granted<T>(result: T | SqlRefusal): T {
  if (!isRefusal(result)) return result;
  const { turn, ...refusal } = result;
  throw refusalError({ ...refusal, ...(turn ? { turn: toTurn(toRow<TurnRow>(turn)) } : {}) } as Refusal);
}

function isRefusal(result: unknown): result is SqlRefusal {
  return typeof result === 'object' && result !== null && 'refused' in result;
}
