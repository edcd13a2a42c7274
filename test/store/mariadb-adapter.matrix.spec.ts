import { describeSessionsAdapter } from '../../lib/testing/index.js';
import { limitModelRuns } from '../support/model-runs.js';
import { describeMariadb, MARIADB } from '../support/servers.js';
import { serverStore } from '../support/stores.js';

limitModelRuns(6);

describeMariadb('the store on a server', () => {
  const { name, open } = serverStore(MARIADB);
  describeSessionsAdapter(name, open);
});
