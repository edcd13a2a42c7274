import { type Refusal, refusalError } from '../core/refusals.js';
import { entries, type Fields } from './redis-rows.js';
import { turnOf } from './redis-turn-rows.js';

const NUMBERS: ReadonlySet<string> = new Set(['fence', 'limit', 'bytes', 'max_bytes', 'since', 'turn_index']);

/** The reply of a script: 1 and its results, or 0, an error code and the details of the error. */
export type Reply = readonly [granted: number, ...rest: unknown[]];

/** Returns the results of a script. @throws the typed error of a refusal */
export function granted<T extends readonly unknown[]>([isGranted, ...rest]: Reply): T {
  if (isGranted === 1) return rest as unknown as T;
  const [code, ...about] = rest as [string, ...(string | number)[]];
  const { turn, alive, ...refusal } = Object.fromEntries(entries(about, NUMBERS)) as Record<string, unknown>;
  throw refusalError({
    ...refusal,
    refused: code,
    alive: alive === 1,
    ...(turn ? { turn: turnOf(turn as Fields) } : {}),
  } as Refusal);
}
