import Sequencer from '@jest/test-sequencer';

/**
 * Those that take the longest, so that none of them is left for the end, when the other workers have nothing to do. Those that wait,
 * for outages or for time to pass, stand among those that compute.
 */
const FIRST = [
  'store/mariadb-adapter',
  'queue/bullmq-faults',
  'store/postgres-adapter',
  'store/slow-servers',
  'turn/idle-lanes',
  'store/adapters',
  'store/events-through-faults',
  'replay/replay',
  'e2e/support-desk.events',
  'turn/workers',
  'e2e/chat-page',
  'store/redis-adapter',
  'turn/events',
  'store/redis-cluster',
  'conversation/compaction-races',
  'e2e/packed-package',
  'http/turn-events',
  'store/sqlite-processes',
  'http/state-keys',
  'module/optional-parts',
  'turn/recovery',
  'store/broken-adapters',
  'turn/recovery-report',
  'orchestrator/killed-turns',
  'queue/killed-worker',
  'model/stores',
  'orchestration/races',
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
