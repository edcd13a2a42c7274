/**
 * Updates durations.json from the results of `jest --json`: the specs of 3 seconds and more. Those that did not run, and still exist, keep
 * their durations.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import process from 'node:process';

const FILE = 'test/support/durations.json';
const known = new Map(Object.entries(JSON.parse(readFileSync(FILE, 'utf8'))));
const { testResults } = JSON.parse(readFileSync('build/test-results.json', 'utf8'));
for (const { name, startTime, endTime } of testResults) {
  known.set(relative(process.cwd(), name), Math.round((endTime - startTime) / 1000));
}
const seconds = [...known]
  .filter(([spec, duration]) => duration >= 3 && existsSync(spec))
  .sort(([a, first], [b, second]) => second - first || (a < b ? -1 : 1));
writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(seconds), null, 2)}\n`);
