import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import Sequencer from '@jest/test-sequencer';

/** Seconds by spec; `npm run test:durations` records them. */
const DURATIONS = JSON.parse(readFileSync(join(import.meta.dirname, 'durations.json'), 'utf8'));

/** Runs the longest specs first, so that none of them is left for the end, when the other workers are idle. */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    const secondsOf = ({ path, context }) => DURATIONS[relative(context.config.rootDir, path)] ?? 0;
    return [...tests].sort((a, b) => secondsOf(b) - secondsOf(a));
  }
}
