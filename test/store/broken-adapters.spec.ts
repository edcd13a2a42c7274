import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../support/stores.js';
import { BROKEN_ADAPTERS } from './fixtures/broken-adapters.js';

interface TestResult {
  /** The store first. */
  readonly ancestorTitles: readonly string[];
  readonly title: string;
  readonly status: 'passed' | 'failed';
}

/** The suite is tested too: over stores that are broken on purpose it must fail, and say what is wrong. */
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

/** In a test runner of its own: the failures there are no failures here. */
async function runSuiteOverBrokenAdapters(): Promise<TestResult[]> {
  const report = join(temporaryFolder(), 'report.json');
  const jest = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];
  const fixture = ['--testMatch', '**/broken-adapters.fixture.ts', '--json', '--outputFile', report];
  // All of it over the sound store, and over the broken ones what shall catch one of them.
  const some = ['--testNamePattern', `^none |${BROKEN_ADAPTERS.map(({ caughtBy }) => ` ${caughtBy}`).join('|')}`];
  // It exits with 1, as it should.
  await new Promise((resolve) =>
    execFile(process.execPath, [...jest, ...fixture, ...some], { maxBuffer: Infinity }, resolve),
  );
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
    testResults: { assertionResults: TestResult[] }[];
  };
  return testResults[0].assertionResults;
}
