import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';
import { type Outcome } from './benchmark.js';
import { type Environment } from './environment.js';
import { type Sizes } from './sizes.js';
import { type StoreName } from './stores.js';

/** The result of a benchmark on a store. */
export interface Result {
  readonly row: string;
  readonly title: string;
  readonly store: StoreName;
  readonly environment: Environment;
  readonly sizes: Sizes;
  readonly outcome: Outcome;
}

export async function saveResult(folder: string, result: Result): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const file = `${result.row.toLowerCase()}.${result.store}.json`;
  const text = JSON.stringify(result, withoutNoise);
  writeFileSync(join(folder, file), await format(text, { parser: 'json', printWidth: 120 }));
}

/** All saved results. A result stays until its row is measured again on its store. */
export function loadResults(folder: string): Result[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Result);
}

/** Rounds to six digits, which is more than the precision of a measurement. */
function withoutNoise(_: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
}
