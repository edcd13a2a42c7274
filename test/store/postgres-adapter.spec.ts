import '../support/model-runs.js';
import { describeSessionsAdapter } from '../../lib/testing/index.js';
import { describePostgres, POSTGRES } from '../support/servers.js';
import { serverStore } from '../support/stores.js';

describePostgres('the store on a server', () => {
  const { name, open } = serverStore(POSTGRES);
  describeSessionsAdapter(name, open);
});
