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
 * The maximum number of runs within BUDGET_MS. For a longer search set the number in fast-check itself, as
 * in `fc.configureGlobal({ numRuns: 10_000 })`, and `seed` to repeat the same runs.
 */
const RUNS = 100;
const BUDGET_MS = 2000;
const TEST_TIME_LIMIT_MS = 900_000;

/** Compares random operations with plain models: in sequence, and of several concurrent clients. */
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
    `${title} match the model for random sequences of calls`,
    async () => {
      const fc = await fastCheck();
      await runSequentially(fc, specimen, context, budgetOf(fc));
    },
    TEST_TIME_LIMIT_MS,
  );

  it(
    `${title} are linearizable for random concurrent calls`,
    async () => {
      const fc = await fastCheck();
      await runConcurrently(fc, specimen, context, budgetOf(fc));
    },
    TEST_TIME_LIMIT_MS,
  );
}

/** Loads fast-check only here, so that it is not required to import the testing module. */
const fastCheck = (): Promise<FastCheck> => loadPeer('fast-check', async () => (await import('fast-check')).default);

/** Limits the search. Fast-check's own time limit would leave a run active during the next test. */
function budgetOf(fc: FastCheck): RunBudget {
  const { numRuns } = fc.readConfigureGlobal();
  const end = numRuns === undefined ? Date.now() + BUDGET_MS : Infinity;
  return { numRuns: numRuns ?? RUNS, isSpent: () => Date.now() >= end };
}
