import { DefaultReporter } from '@jest/reporters';

const SLOW_MS = 10_000;

/** Prints the files that fail, with their logs, and those that take 10 seconds or more. */
export default class QuietReporter extends DefaultReporter {
  printTestFileHeader(path, config, result) {
    const { start, end } = result.perfStats;
    const isQuiet = result.numFailingTests === 0 && !result.testExecError;
    if (isQuiet && end - start < SLOW_MS) return;
    super.printTestFileHeader(path, config, isQuiet ? { ...result, console: undefined } : result);
  }
}
