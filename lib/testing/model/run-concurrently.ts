import { type ConformanceContext } from '../conformance/target.js';
import { History } from './history.js';
import { isLinearizable } from './linearizability.js';
import { type Driver, type FastCheck, REAL_TIME, type RunBudget, type Specimen } from './specimen.js';

/** Many clients with few calls overlap more often than few clients with many calls. */
const CLIENTS = 8;
/** The number of calls per client, and the number of calls before them. */
const MIN_ACTIONS = 3;
const MAX_ACTIONS = 6;

/**
 * Runs random operations of several concurrent clients on one subject. Some order of the operations must explain all
 * outcomes. A failure prints the complete history.
 */
export async function runConcurrently<Action, Operation>(
  fc: FastCheck,
  specimen: Specimen<Action, Operation>,
  context: ConformanceContext,
  { numRuns, isSpent }: RunBudget,
): Promise<void> {
  const actions = specimen.actions(fc, REAL_TIME);
  const script = fc.array(actions, { minLength: MIN_ACTIONS, maxLength: MAX_ACTIONS, size: 'max' });
  const scripts = fc.array(script, { minLength: CLIENTS, maxLength: CLIENTS });

  const explained = fc.asyncProperty(script, scripts, async (before, scripts) => {
    if (isSpent()) return;
    const driver = await specimen.open(context);
    const history = new History<Operation>();
    await runScript(before, 0, driver, history, context);
    await Promise.all(scripts.map((script, client) => runScript(script, client, driver, history, context)));
    for (const operation of specimen.reads) {
      await history.record(0, operation, () => driver.send(context.adapter, operation));
    }
    if (isLinearizable(history.calls, specimen.model(REAL_TIME))) return;
    const calls = history.toString().replaceAll(driver.id, 'ID');
    throw new Error(`No order of these calls explains their outcomes.\n${calls}`);
  });
  await fc.assert(explained, { numRuns });
}

async function runScript<Action, Operation>(
  script: readonly Action[],
  client: number,
  driver: Driver<Action, Operation>,
  history: History<Operation>,
  { clients, moveClock }: ConformanceContext,
): Promise<void> {
  const adapter = clients[client % clients.length];
  for (const action of script) {
    // Times cannot be predicted here, because every clock runs.
    await moveClock?.(1);
    const operation = driver.plan(action);
    if (operation) await history.record(client, operation, () => driver.send(adapter, operation));
  }
}
