import { HandlerError, type OrchestrationStep } from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { describeStores, noteWarnings, orchestrate, type Orchestration, planOf } from '../support/orchestration.js';

const OPEN: OrchestrationStep = { name: 'open', isDefault: true };

interface Call {
  readonly callId: string;
  readonly input?: unknown;
}

/** The ways to record a use outside of turns. */
const WAYS: Readonly<
  Record<string, (services: Orchestration, sessionId: string, tool: string, call: Call) => Promise<unknown>>
> = {
  processToolUsage: ({ service }, ...use) => service.processToolUsage(...use),
  admitTool: ({ service }, ...use) => service.admitTool(...use),
  addUsedTool: ({ states }, ...use) => states.addUsedTool(...use),
  processTool: ({ sequencer }, sessionId, tool, call) => sequencer.processTool(OPEN, sessionId, tool, call),
};

describeStores('ids of calls', (store) => {
  beforeEach(() => void noteWarnings());

  it.each(Object.keys(WAYS))('FIX-11 %s refuses the id of a call with another tool or input', async (way) => {
    const services = orchestrate(store(), { plans: [planOf([OPEN])] });
    const sessionId = mintId();
    const use = (tool: string, call: Call) => WAYS[way](services, sessionId, tool, call);
    const input = { order: 1, lines: [{ id: 7 }] };
    await use('pay', { callId: 'call 1', input });
    // The same call again counts once.
    await use('pay', { callId: 'call 1', input: { lines: [{ id: 7 }], order: 1 } });
    await use('pay', { callId: 'call 1' });

    for (const [tool, call] of [
      ['refund', { callId: 'call 1' }],
      ['pay', { callId: 'call 1', input: { ...input, order: 2 } }],
    ] as const) {
      const error: unknown = await use(tool, call).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(HandlerError);
      expect(error).toMatchObject({ code: 'TOOL_CALL_CONFLICT', callId: 'call 1', tool: 'pay' });
    }
    const state = await services.states.getState(sessionId);
    expect(state?.toolHistory.map(({ tool }) => tool)).toEqual(['pay']);
  });

  it('FIX-11 refuses the id of a call that failed, when another tool comes with it', async () => {
    const { service, states } = orchestrate(store(), { plans: [planOf([OPEN])] });
    const sessionId = mintId();
    await service.processToolUsage(sessionId, 'pay', { callId: 'call 1', outcome: 'failed' });
    await expect(service.processToolUsage(sessionId, 'refund', { callId: 'call 1' })).rejects.toMatchObject({
      code: 'TOOL_CALL_CONFLICT',
    });
    await service.processToolUsage(sessionId, 'pay', { callId: 'call 1' });
    expect((await states.getState(sessionId))?.toolHistory.map(({ outcome }) => outcome)).toEqual([
      'failed',
      'succeeded',
    ]);
  });

  it.each(Object.keys(WAYS))('FIX-63 %s takes ids of any length', async (way) => {
    const services = orchestrate(store(), { plans: [planOf([OPEN])] });
    const sessionId = mintId();
    for (const end of ['a', 'b', 'b']) {
      await WAYS[way](services, sessionId, 'pay', { callId: `call_${'x'.repeat(1000)}${end}` });
    }
    const state = await services.states.getState(sessionId);
    expect(state?.toolHistory.map(({ tool }) => tool)).toEqual(['pay', 'pay']);
  });
});
