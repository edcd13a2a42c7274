/** Writes durations.json from the results of `jest --json`: the specs of 3 seconds and more. */
import { readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import process from 'node:process';

const { testResults } = JSON.parse(readFileSync('build/test-results.json', 'utf8'));
const seconds = testResults
  .map(({ name, startTime, endTime }) => [relative(process.cwd(), name), Math.round((endTime - startTime) / 1000)])
  .filter(([, duration]) => duration >= 3)
  .sort(([a, first], [b, second]) => second - first || (a < b ? -1 : 1));
writeFileSync('test/support/durations.json', `${JSON.stringify(Object.fromEntries(seconds), null, 2)}\n`);
