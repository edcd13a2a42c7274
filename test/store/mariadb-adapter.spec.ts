import '../support/model-runs.js';
import { describeSessionsAdapter } from '../../lib/testing/index.js';
import { describeMariadb, MARIADB } from '../support/servers.js';
import { serverStore } from '../support/stores.js';

describeMariadb('the store on a server', () => {
  const { name, open } = serverStore(MARIADB);
  describeSessionsAdapter(name, open);
});
