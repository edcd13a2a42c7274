import Sequencer from '@jest/test-sequencer';

/** Those that take the longest, so that none of them is left for the end, when the other workers have nothing to do. */
const FIRST = [
  'store/mariadb-adapter',
  'store/postgres-adapter',
  'store/adapters',
  'turn/idle-lanes',
  'store/redis-adapter',
  'e2e/packed-package',
  'queue/bullmq-faults',
  'store/redis-cluster',
  'turn/workers',
  'replay/replay',
  'turn/events',
  'store/typeorm-cli',
].map((name) => `/test/${name}.spec.ts`);

/** In a new checkout nothing is known of how long files take, and jest begins with the largest ones. */
export default class LongestFirst extends Sequencer {
  async sort(tests) {
    const placeOf = ({ path }) => {
      const place = FIRST.findIndex((name) => path.endsWith(name));
      return place === -1 ? FIRST.length : place;
    };
    const others = await super.sort(tests);
    return [...others].sort((a, b) => placeOf(a) - placeOf(b));
  }
}
