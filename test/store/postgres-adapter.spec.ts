import { describeSessionsAdapter } from '../../lib/testing/index.js';
import { describePostgres, TEST_SERVERS } from '../support/servers.js';
import { serverStore } from '../support/stores.js';

describePostgres('the store on a server', () => {
  for (const server of TEST_SERVERS.filter(({ name }) => name === 'postgres')) {
    const { name, open } = serverStore(server);
    describeSessionsAdapter(name, open);
  }
  it('NST-26 is there', () => expect(TEST_SERVERS.map(({ name }) => name)).toContain('postgres'));
});
