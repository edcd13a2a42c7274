import { describeSessionsAdapter } from '../../lib/testing/index.js';
import { STORES } from '../support/stores.js';

for (const { name, open } of STORES) describeSessionsAdapter(name, open);
