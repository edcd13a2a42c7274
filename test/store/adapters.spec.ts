import { describeSessionsAdapter } from '../../lib/testing/index.js';
import { EMBEDDED_STORES } from '../support/stores.js';

for (const { name, open } of EMBEDDED_STORES) describeSessionsAdapter(name, open);
