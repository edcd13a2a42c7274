import { Logger } from '@nestjs/common';
import { UsageError } from '../support/command-line.js';
import { parseOptions, USAGE } from './chaos-options.js';
import { complaintOf, lineOf, tableOf } from './report.js';
import { runChaos, type RunResult } from './run.js';

const interrupted = new AbortController();
// A second signal ends the process immediately.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());

try {
  process.exitCode = await main(process.argv.slice(2), interrupted.signal);
} catch (error) {
  const theirs = error instanceof UsageError;
  if (theirs) console.error(`${error.message}\nSee --help.`);
  else console.error(interrupted.signal.aborted ? 'Interrupted.' : error);
  process.exitCode = theirs ? 2 : 1;
}

async function main(args: string[], stop: AbortSignal): Promise<number> {
  const runs = parseOptions(args);
  if (!runs) {
    console.log(USAGE);
    return 0;
  }
  // Suppresses logs of the store about its server.
  Logger.overrideLogger(false);
  console.log(`Seed ${runs[0].seed}, ${runs.length} ${runs.length === 1 ? 'run' : 'runs'}.`);
  const results: RunResult[] = [];
  for (const run of runs) {
    const result = await runChaos(run, stop);
    results.push(result);
    console.log(lineOf(result));
    if (result.folder) console.error(complaintOf(result));
  }
  console.log(tableOf(results));
  return results.some(({ folder }) => folder !== undefined) ? 1 : 0;
}
