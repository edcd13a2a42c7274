import '../support/model-runs.js';
import { describeSessionsAdapter } from '../../lib/testing/index.js';
import { describeRedis, REDIS } from '../support/servers.js';
import { serverStore } from '../support/stores.js';

describeRedis('the store on a server', () => {
  const { name, open } = serverStore(REDIS);
  describeSessionsAdapter(name, open);
});
