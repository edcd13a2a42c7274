import { describeSessionsAdapter } from '../../lib/testing/index.js';
import { limitModelRuns } from '../support/model-runs.js';
import { EMBEDDED_STORES } from '../support/stores.js';

limitModelRuns(30);

for (const { name, open } of EMBEDDED_STORES) describeSessionsAdapter(name, open);
