import { parseArgs } from 'node:util';
import { STORE_NAMES, type StoreName } from './stores.js';

export const USAGE = `Measures what the stores cost, and how that grows. Starts its own servers.

  npm run bench -- [ROW...] [options]

ROW is a row of the specification, PRF-07 for one, or "growth"; left out: all of them.

  --store NAME   sqlite, postgres, mariadb, redis or memory; may be given more than once; left out: all of them
  --quick        small stores, few rounds: checks that everything runs and that the answers are right; writes no results
  --many N       sessions in the largest store, instead of a million; the results are written all the same
  --help         this text

Exit code: 0 when everything ran and every answer was right, 1 when not, 2 for wrong arguments.`;

export interface BenchOptions {
  /** Names in capitals. Empty: all. */
  readonly rows: readonly string[];
  readonly stores: readonly StoreName[];
  readonly quick: boolean;
  readonly many?: number;
}

export class UsageError extends Error {}

/** @returns `null` if help is requested. @throws UsageError */
export function parseOptions(args: string[]): BenchOptions | null {
  const { values, positionals } = parse(args);
  if (values.help) return null;
  return {
    rows: positionals.map((row) => row.toUpperCase()),
    stores: toStores(values.store),
    quick: values.quick ?? false,
    ...(values.many === undefined ? {} : { many: toCount(values.many) }),
  };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        store: { type: 'string', multiple: true },
        quick: { type: 'boolean' },
        many: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function toStores(names: readonly string[] = STORE_NAMES): readonly StoreName[] {
  const unknown = names.find((name) => !STORE_NAMES.some((known) => known === name));
  if (unknown !== undefined)
    throw new UsageError(`--store is ${unknown}; it must be one of ${STORE_NAMES.join(', ')}.`);
  return STORE_NAMES.filter((name) => names.includes(name));
}

function toCount(text: string): number {
  if (!/^[1-9]\d{4,7}$/.test(text)) throw new UsageError(`--many is ${text}; it must be an integer of 10000 or more.`);
  return Number(text);
}
