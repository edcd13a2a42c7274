import { Logger } from '@nestjs/common';
import { parseOptions, USAGE, UsageError } from './chaos-options.js';
import { complaintOf, lineOf, tableOf } from './report.js';
import { runChaos, type RunResult } from './run.js';

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const theirs = error instanceof UsageError;
  console.error(theirs ? `${error.message}\nSee --help.` : error);
  process.exitCode = theirs ? 2 : 1;
}

async function main(args: string[]): Promise<number> {
  const runs = parseOptions(args);
  if (!runs) {
    console.log(USAGE);
    return 0;
  }
  // What the store says of its server is known here.
  Logger.overrideLogger(false);
  console.log(`Seed ${runs[0].seed}, ${runs.length} ${runs.length === 1 ? 'run' : 'runs'}.`);
  const results: RunResult[] = [];
  for (const run of runs) {
    const result = await runChaos(run);
    results.push(result);
    console.log(lineOf(result));
    if (result.folder) console.error(complaintOf(result));
  }
  console.log(tableOf(results));
  return results.some(({ folder }) => folder !== undefined) ? 1 : 0;
}
