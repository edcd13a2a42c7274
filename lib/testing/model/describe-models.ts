import { loadPeer } from '../../common/load-peer.js';
import { type ConformanceContext } from '../conformance/target.js';
import { CHECKPOINTS } from './checkpoint-specimen.js';
import { DOCUMENTS } from './document-specimen.js';
import { LANE } from './lane-specimen.js';
import { LEASE } from './lease-specimen.js';
import { LOG } from './log-specimen.js';
import { SESSIONS } from './session-specimen.js';
import { runConcurrently } from './run-concurrently.js';
import { runSequentially } from './run-sequentially.js';
import { type FastCheck, type RunBudget, type SequentialModel, type Specimen } from './specimen.js';

/**
 * As many runs as fit, so that a store across a network has fewer. For a longer search say how many to fast-check itself, as
 * in `fc.configureGlobal({ numRuns: 10_000 })`, with `seed` for the same ones again.
 */
const RUNS = 100;
const BUDGET_MS = 2000;
const TEST_TIME_LIMIT_MS = 900_000;

/** Random operations against plain models: one after the other, and of several clients at once. */
export function describeModels(context: ConformanceContext): void {
  describe('against a model', () => {
    describeModel('SES-01 SES-05 SES-07 SES-09 SES-12 SES-16 the sessions of a user', SESSIONS, context);
    describeModel('TRN-01 the turns of a session', LANE, context);
    describeModel('STA-03 the messages of a session', LOG, context);
    describeModel('BOT-20 BOT-21 the checkpoints of a session', CHECKPOINTS, context);
    describeModel('ORC-03 ORC-05 ORC-07 ORC-13 the documents of a session', DOCUMENTS, context);
    describeModel('the holders of a lease', LEASE, context);
  });
}

function describeModel<Action, Operation, Model extends SequentialModel<Operation>>(
  title: string,
  specimen: Specimen<Action, Operation, Model>,
  context: ConformanceContext,
): void {
  it(
    `${title} go as in the model, whatever comes after what`,
    async () => {
      const fc = await fastCheck();
      await runSequentially(fc, specimen, context, budgetOf(fc));
    },
    TEST_TIME_LIMIT_MS,
  );

  it(
    `${title} look to clients that work at once as if they had come one after the other`,
    async () => {
      const fc = await fastCheck();
      await runConcurrently(fc, specimen, context, budgetOf(fc));
    },
    TEST_TIME_LIMIT_MS,
  );
}

/** Loaded only here: who imports the testing module alone need not have it. */
const fastCheck = (): Promise<FastCheck> => loadPeer('fast-check', async () => (await import('fast-check')).default);

/** Not fast-check's own time limit, which leaves a run behind that goes on beside the next test. */
function budgetOf(fc: FastCheck): RunBudget {
  const { numRuns } = fc.readConfigureGlobal();
  const end = numRuns === undefined ? Date.now() + BUDGET_MS : Infinity;
  return { numRuns: numRuns ?? RUNS, isSpent: () => Date.now() >= end };
}
