import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import {
  createOrchestrationService,
  createOrchestrationStateManager,
  type OrchestrationState,
  type SessionsAdapter,
  type StepPlan,
} from '../../lib/index.js';
import { mintId } from '../../lib/common/ids.js';
import { BEHAVIOUR_STORES } from '../support/stores.js';
import { randomPlan, randomUse } from './random-plans.js';
import { ReferencePlan, type ReferenceUse } from './reference.js';

const CLIENTS = 3;

// Plans are random, and so most uses are out of turn.
beforeAll(() => void Logger.overrideLogger(false));
afterAll(() => void Logger.overrideLogger(true));

/** The uses of several concurrent clients, each in order. */
const randomClients = fc.array(fc.array(randomUse, { maxLength: 12 }), { minLength: CLIENTS, maxLength: CLIENTS });

describe.each(BEHAVIOUR_STORES)('random plans on $name', ({ open }) => {
  let target: ReturnType<typeof open>;
  let clients: readonly SessionsAdapter[];

  beforeAll(async () => {
    target = open();
    const { adapter, connect } = target;
    await adapter.init?.();
    const others = Array.from({ length: CLIENTS - 1 }, () => (connect ? (connect() as SessionsAdapter) : adapter));
    clients = [adapter, ...others];
    for (const client of others) if (client !== adapter) await client.init?.();
  });

  afterAll(async () => {
    for (const client of new Set(clients)) await client.close?.();
  });

  it('ORC-30 uses of several clients at once all count, and lead to the state that the rules say', async () => {
    await fc.assert(
      fc.asyncProperty(randomPlan, randomClients, async (plan, uses) => {
        const sessionId = mintId();
        await Promise.all(uses.map((list, at) => useInOrder(clients[at], plan, sessionId, at, list)));
        const state = await stateOf(clients[0], plan, sessionId);
        const count = uses.flat().length;
        expect(state?.toolHistory ?? []).toHaveLength(count);
        if (!state) return;

        const reference = new ReferencePlan(plan.steps);
        for (const { callId } of state.toolHistory) {
          const [client, index] = callId!.split('-').map(Number);
          reference.use(uses[client][index]);
        }
        expect(seen(state)).toEqual(reference.state);
        uses.forEach((list, client) => {
          const order = state.toolHistory.flatMap(({ callId }) => (callId!.startsWith(`${client}-`) ? [callId] : []));
          expect(order).toEqual(list.map((_, index) => `${client}-${index}`));
        });
      }),
      { numRuns: 60, interruptAfterTimeLimit: 6_000, markInterruptAsFailure: false },
    );
  });
});

async function useInOrder(
  { state }: SessionsAdapter,
  plan: StepPlan,
  sessionId: string,
  client: number,
  uses: readonly ReferenceUse[],
): Promise<void> {
  const manager = createOrchestrationStateManager({
    storageProvider: state,
    plans: [plan],
    cleanup: { enabled: false },
  });
  const service = createOrchestrationService(manager);
  for (const [index, { tool, failed, message }] of uses.entries()) {
    await service.processToolUsage(sessionId, tool, {
      callId: `${client}-${index}`,
      outcome: failed ? 'failed' : 'succeeded',
      ...(message === undefined ? {} : { message }),
    });
  }
}

function stateOf({ state }: SessionsAdapter, plan: StepPlan, sessionId: string): Promise<OrchestrationState | null> {
  return createOrchestrationStateManager({
    storageProvider: state,
    plans: [plan],
    cleanup: { enabled: false },
  }).getState(sessionId);
}

function seen(state: OrchestrationState): ReferencePlan['state'] {
  return {
    activeStep: state.activeStep,
    sequenceIndex: state.sequenceIndex,
    recentlyUsedTools: state.recentlyUsedTools,
    history: state.toolHistory.map(({ tool, step, outcome }) => ({ tool, step, failed: outcome === 'failed' })),
  };
}
