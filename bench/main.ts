import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { type Benchmark } from './benchmark.js';
import { BENCHMARKS } from './benchmarks.js';
import { BENCH } from './chart-library.js';
import { environmentOf } from './environment.js';
import { installOnce } from './install.js';
import { type BenchOptions, parseOptions, USAGE, UsageError } from './options.js';
import { resultText } from './report.js';
import { writePage } from './results-page.js';
import { saveResult } from './results.js';
import { FULL, QUICK, type Sizes } from './sizes.js';
import { type StoreName, Stores } from './stores.js';

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof UsageError ? `${error.message} See --help.` : error);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

async function main(args: string[]): Promise<number> {
  const options = parseOptions(args);
  if (!options) {
    console.log(USAGE);
    return 0;
  }
  const benchmarks = chosen(options);
  installOnce();
  Logger.overrideLogger(['error', 'fatal']);
  // A quick run also writes all pages, to a temporary folder.
  const scratch = mkdtempSync(join(tmpdir(), 'bench-results-'));
  const folder = options.quick ? scratch : join(BENCH, 'results');
  const page = join(options.quick ? scratch : BENCH, 'RESULTS.md');
  try {
    let failed = 0;
    for (const store of options.stores) failed += await runOn(store, benchmarks, options, folder);
    await writePage(folder, page);
    if (!options.quick) console.log(`\nWritten: ${page}`);
    return failed === 0 ? 0 : 1;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

function chosen({ rows }: BenchOptions): readonly Benchmark[] {
  const unknown = rows.find((row) => !BENCHMARKS.some(({ id }) => id === row));
  if (unknown !== undefined) {
    throw new UsageError(`Unknown benchmark ${unknown}. Allowed: ${BENCHMARKS.map(({ id }) => id).join(', ')}.`);
  }
  return rows.length === 0 ? BENCHMARKS : BENCHMARKS.filter(({ id }) => rows.includes(id));
}

function sizesOf({ quick, many }: BenchOptions): Sizes {
  const sizes = quick ? QUICK : FULL;
  return many === undefined ? sizes : { ...sizes, many };
}

/** @returns the number of failed benchmarks */
async function runOn(
  name: StoreName,
  benchmarks: readonly Benchmark[],
  options: BenchOptions,
  folder: string,
): Promise<number> {
  const wanted = benchmarks.filter(({ stores }) => stores.includes(name));
  if (wanted.length === 0) return 0;
  const { quick } = options;
  const sizes = sizesOf(options);
  const stores = await Stores.open(name);
  let failed = 0;
  try {
    for (const benchmark of wanted) {
      const { id, title } = benchmark;
      try {
        const outcome = await benchmark.run(stores, sizes);
        const result = { row: id, title, store: name, environment: environmentOf(stores.version), sizes, outcome };
        await saveResult(folder, result);
        console.log(quick ? `${id} on ${name}: runs, and its answers are right` : resultText(result));
      } catch (error) {
        failed += 1;
        console.error(`${id} on ${name} FAILED:`, error);
      }
    }
  } finally {
    await stores.close();
  }
  return failed;
}
