import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../support/stores.js';
import { BROKEN_ADAPTERS } from './fixtures/broken-adapters.js';

interface TestResult {
  /** The first title is the store. */
  readonly ancestorTitles: readonly string[];
  readonly title: string;
  readonly status: 'passed' | 'failed';
}

/** Tests the suite itself: on stores with one deliberate mistake, the matching test must fail. */
describe('the conformance suite', () => {
  let results: readonly TestResult[];

  beforeAll(async () => {
    results = await runSuiteOverBrokenAdapters();
  }, 240_000);

  it.each(BROKEN_ADAPTERS)('NST-26 catches $mistake', ({ mistake, caughtBy }) => {
    expect(failuresOf(mistake)).toContainEqual(expect.stringMatching(new RegExp(`^${caughtBy}`)));
  });

  it('NST-26 passes the same store without a mistake', () => {
    expect(failuresOf('none')).toEqual([]);
    expect(results.filter(({ ancestorTitles: [store] }) => store === 'none').length).toBeGreaterThan(300);
  });

  function failuresOf(mistake: string): string[] {
    return results
      .filter(({ ancestorTitles: [store], status }) => store === mistake && status === 'failed')
      .map(({ title }) => title);
  }
});

/** Runs in a separate test runner, so that its failures are not failures here. */
async function runSuiteOverBrokenAdapters(): Promise<TestResult[]> {
  const report = join(temporaryFolder(), 'report.json');
  const jest = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];
  const fixture = ['--testMatch', '**/broken-adapters.fixture.ts', '--json', '--outputFile', report];
  // The whole suite for the correct store, and only the catching tests for the broken ones.
  const some = ['--testNamePattern', `^none |${BROKEN_ADAPTERS.map(({ caughtBy }) => ` ${caughtBy}`).join('|')}`];
  // The exit code is 1, because tests fail.
  await new Promise((resolve) =>
    execFile(process.execPath, [...jest, ...fixture, ...some], { maxBuffer: Infinity }, resolve),
  );
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
    testResults: { assertionResults: TestResult[] }[];
  };
  return testResults[0].assertionResults;
}
