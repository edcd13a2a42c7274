import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { oneOf, parseArguments, toCount, UsageError } from '../support/command-line.js';
import { checkRequest } from './check-request.js';
import { fuzzRequest } from './requests.js';
import { FuzzTarget, type Platform, PLATFORMS } from './target.js';

const USAGE = `Sends random requests to every controller of the package. Checks that no response is a 5xx, that rejected requests change nothing,
and that foreign data looks like missing data.

  npm run fuzz -- [options]

  --seconds N      total time (default 60)
  --platform NAME  only this one: ${PLATFORMS.join(', ')}
  --seed N         seed of the requests (default: a new one each time)
  --help           this text

Exit code: 0 if all checks pass, 1 if not, with the smallest failing request; 2 for invalid arguments.`;

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const theirs = error instanceof UsageError;
  console.error(theirs ? `${error.message}\nSee --help.` : error);
  process.exitCode = theirs ? 2 : 1;
}

async function main(args: string[]): Promise<number> {
  const { values } = parseArguments({
    args,
    options: {
      seconds: { type: 'string' },
      platform: { type: 'string' },
      seed: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const platforms = values.platform === undefined ? PLATFORMS : [oneOf(PLATFORMS, '--platform', values.platform)];
  const seconds = toCount('--seconds', values.seconds) ?? 60;
  const seed = toCount('--seed', values.seed) ?? Math.floor(Math.random() * 1_000_000) + 1;
  // Rejected requests fill it.
  Logger.overrideLogger(false);
  console.log(`Seed ${seed}, ${seconds} seconds on ${platforms.join(' and ')}.`);
  for (const platform of platforms) await fuzz(platform, seed, (seconds * 1000) / platforms.length);
  return 0;
}

async function fuzz(platform: Platform, seed: number, timeMs: number): Promise<void> {
  const target = await FuzzTarget.start(platform);
  const answers = new Map<number, number>();
  try {
    await fc.assert(
      fc.asyncProperty(fuzzRequest, async (request) => {
        const status = await checkRequest(target, request);
        answers.set(status, (answers.get(status) ?? 0) + 1);
      }),
      { seed, numRuns: Number.MAX_SAFE_INTEGER, interruptAfterTimeLimit: timeMs },
    );
  } finally {
    await target.close();
  }
  const counts = [...answers].sort(([a], [b]) => a - b).map(([status, count]) => `${count} of ${status}`);
  console.log(`${platform}: ${counts.join(', ')}.`);
}
