import { describeSessionsAdapter } from '../../lib/testing/index.js';
import { limitModelRuns } from '../support/model-runs.js';
import { describeRedis, REDIS } from '../support/servers.js';
import { serverStore } from '../support/stores.js';

limitModelRuns(10);

describeRedis('the store on a server', () => {
  const { name, open } = serverStore(REDIS);
  describeSessionsAdapter(name, open);
});
