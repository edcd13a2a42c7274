import { type Refusal, refusalError } from '../core/refusals.js';
import { entries, type Fields } from './redis-rows.js';
import { turnOf } from './redis-turn-rows.js';

const NUMBERS: ReadonlySet<string> = new Set(['fence', 'limit', 'bytes', 'max_bytes', 'since', 'turn_index']);

/** A script's answer: 1 and what it gives, or 0, a code and what the refusal is about. */
export type Reply = readonly [granted: number, ...rest: unknown[]];

/** What a script gave. @throws the typed error that it refused with */
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
