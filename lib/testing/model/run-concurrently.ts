import { type ConformanceContext } from '../conformance/target.js';
import { History } from './history.js';
import { isLinearizable } from './linearizability.js';
import { type Driver, type FastCheck, REAL_TIME, type RunBudget, type Specimen } from './specimen.js';

/** Many that do little meet more often than few that do much. */
const CLIENTS = 8;
/** How much each client does, and how much is done before them. */
const MIN_ACTIONS = 3;
const MAX_ACTIONS = 6;

/**
 * Random operations of several clients at once on one subject: there must be an order of them that explains what every
 * client saw. On a failure the error tells the whole history.
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
    await play(before, 0, driver, history, context);
    await Promise.all(scripts.map((script, client) => play(script, client, driver, history, context)));
    for (const operation of specimen.reads) {
      await history.record(0, operation, () => driver.send(context.adapter, operation));
    }
    if (isLinearizable(history.calls, specimen.model(REAL_TIME))) return;
    const told = history.toString().replaceAll(driver.id, 'ID');
    throw new Error(`No order of these calls explains what their clients saw.\n${told}`);
  });
  await fc.assert(explained, { numRuns });
}

async function play<Action, Operation>(
  script: readonly Action[],
  client: number,
  driver: Driver<Action, Operation>,
  history: History<Operation>,
  { clients, moveClock }: ConformanceContext,
): Promise<void> {
  const adapter = clients[client % clients.length];
  for (const action of script) {
    // Nobody foretells times here: every clock runs.
    await moveClock?.(1);
    const operation = driver.plan(action);
    if (operation) await history.record(client, operation, () => driver.send(adapter, operation));
  }
}
