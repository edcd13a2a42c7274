import { describeSessionsAdapter } from '../../lib/testing/index.js';
import { limitModelRuns } from '../support/model-runs.js';
import { describePostgres, POSTGRES } from '../support/servers.js';
import { serverStore } from '../support/stores.js';

limitModelRuns(10);

describePostgres('the store on a server', () => {
  const { name, open } = serverStore(POSTGRES);
  describeSessionsAdapter(name, open);
});
