import 'reflect-metadata';
import { Injectable, type Provider, Scope, type Type } from '@nestjs/common';
import {
  defineOrchestrator,
  defineStepPlan,
  Intent,
  memoryAdapter,
  OrchestrationService,
  OrchestrationStateManager,
  type OrchestrationStep,
  Orchestrator,
  type OrchestratorRef,
  SessionsConfigurationError,
  SessionsModule,
  StepPredicate,
  type StepPlan,
  StepSequencer,
  type TurnContext,
} from 'nestjs-agent-sessions';
import { rejection, startApplication } from '../support/running-application.js';

const STEPS: readonly OrchestrationStep[] = [{ name: 'booking', isDefault: true, sequence: ['search', 'book'] }];
const VIP: readonly OrchestrationStep[] = [
  { name: 'anybody', isDefault: true },
  { name: 'vip', conditions: [{ type: 'any_of', conditions: [{ type: 'predicate', value: 'is-vip' }] }] },
];

@Orchestrator({ name: 'trips', steps: STEPS, onViolation: 'reject', tokenBudget: 100 })
class Trips {
  @Intent()
  async book({ tools }: TurnContext): Promise<string> {
    await tools.use('search', 's', () => null);
    return tools.allowed(['book', 'search']).join();
  }
}

/** An application with these orchestrators and plans, and what its providers are. */
function start(features: readonly (OrchestratorRef | StepPlan)[], providers: readonly Provider[] = []) {
  return startApplication({ imports: [SessionsModule.forFeature([...features])], providers: [...providers] });
}

describe('plans of agents', () => {
  it('ORC-15 come from @Orchestrator, and the services are of the only agent that has one', async () => {
    const { app, handle, session } = await start([Trips]);
    const sessionId = await session();
    expect(await handle(Trips).execute('hi', { sessionId })).toMatchObject({ reply: 'book' });
    const service = app.get(OrchestrationService, { strict: false });
    const manager = app.get(OrchestrationStateManager, { strict: false });
    expect(await service.getAvailableTools(sessionId, ['search', 'book'])).toEqual(['book']);
    expect(await manager.getState(sessionId)).toMatchObject({ sequenceIndex: 1 });
    expect(await manager.of(Trips).getState(sessionId)).toMatchObject({ sequenceIndex: 1 });
    expect(await app.get(StepSequencer, { strict: false }).getCurrentSequenceTool(STEPS[0], sessionId)).toBe('book');
  });

  it('ORC-15 come from forFeature for agents that are not orchestrators; with several, one must be named', async () => {
    const plan = defineStepPlan({ agent: 'assistant', steps: STEPS });
    const { app, session } = await start([Trips, plan]);
    const sessionId = await session();
    const service = app.get(OrchestrationService, { strict: false });
    expect(await service.of(plan).processToolUsage(sessionId, 'search')).toMatchObject({ sequenceIndex: 1 });
    expect(await service.of('assistant').getActiveStep(sessionId)).toMatchObject({ name: 'booking' });
    const problem = await rejection(service.getActiveStep(sessionId), SessionsConfigurationError);
    expect(problem.message).toContain('assistant, trips have plans. Select one with .of(agent).');
  });

  it.each<[string, object, string]>([
    ['a list', { steps: {} }, 'The plan of trips: steps must be a list of steps.'],
    ['a name', { steps: [{ name: '' }] }, 'The plan of trips: step 1: name must be'],
    ['names', { steps: [{ name: 'a' }, { name: 'a' }] }, 'step names must be unique. Duplicate: "a".'],
    [
      'defaults',
      {
        steps: [
          { name: 'a', isDefault: true },
          { name: 'b', isDefault: true },
        ],
      },
      'at most one step may have isDefault. Steps with it: a, b.',
    ],
    ['a field', { steps: [{ name: 'a', tools: [] }] }, 'step a: tools is not a known key.'],
    [
      'a condition',
      { steps: [{ name: 'a', conditions: [{ type: 'used' }] }] },
      'step a: conditions[0].type must be one of tool_used, sequence_match, last_tool, tool_count, tool_failed, message_matches, tokens_over, any_of, not, predicate. Received: "used".',
    ],
    ['its value', { steps: [{ name: 'a', conditions: [{ type: 'tool_used' }] }] }, 'step a: conditions[0].value must'],
    [
      'onComplete',
      { steps: [{ name: 'a', sequence: ['x'], onComplete: 'b' }] },
      'step a: onComplete must be the name of a step: a. Received: "b".',
    ],
    ['onViolation', { steps: STEPS, onViolation: 'ignore' }, 'onViolation must be one of reject, warn, reset.'],
    ['tokenBudget', { tokenBudget: 0 }, 'tokenBudget must be a number of tokens greater than 0.'],
  ])(
    'ORC-25 a wrong plan of a class is an error at the start that names what is wrong: %s',
    async (_, options, problem) => {
      @Orchestrator({ name: 'trips', ...options })
      class Wrong {
        @Intent()
        book(): void {}
      }
      const error = await rejection(start([Wrong]), SessionsConfigurationError);
      expect(error.message).toContain(problem);
      expect(() => defineOrchestrator({ name: 'trips', ...options, intents: { book: () => {} } })).toThrow(
        error.message,
      );
    },
  );

  it('ORC-02 two plans of one agent are an error at the start, unless they are the same', async () => {
    const same = defineStepPlan({ agent: 'trips', steps: STEPS, onViolation: 'reject', tokenBudget: 100 });
    await start([Trips, same]);
    for (const other of [{ steps: VIP.slice(0, 1) }, { steps: STEPS }, { steps: STEPS, tokenBudget: 7 }]) {
      const error = await rejection(
        start([Trips, defineStepPlan({ agent: 'trips', ...other })]),
        SessionsConfigurationError,
      );
      expect(error.message).toBe('The agent "trips" has two step plans. Register one plan per agent.');
    }
  });

  it('ORC-15 states of other namespaces are not seen, and the options reach the states of turns', async () => {
    const adapter = memoryAdapter();
    const options = { adapter, orchestrators: [Trips] };
    const one = await startApplication({
      ...options,
      orchestration: { namespace: 'one', ttlSeconds: 'never', recentTools: 1 },
    });
    const sessionId = await one.session();
    await one.handle(Trips).execute('hi', { sessionId });
    const states = one.app.get(OrchestrationStateManager, { strict: false });
    await states.addUsedTool(sessionId, 'mail');
    expect(await states.getState(sessionId)).toMatchObject({ ttl: 'never', recentlyUsedTools: ['mail'] });
    expect(await adapter.state.get({ namespace: 'one', scope: 'trips', sessionId, key: 'state' })).not.toBeNull();
    await one.close();

    const two = await startApplication({ ...options, orchestration: { ttlSeconds: '60' } });
    const others = two.app.get(OrchestrationStateManager, { strict: false });
    expect(await others.getState(sessionId)).toBeNull();
    await two.handle(Trips).execute('hi', { sessionId: await two.session() });
    await two.handle(Trips).execute('hi', { sessionId });
    expect(await others.getState(sessionId)).toMatchObject({ ttl: 60_000, sequenceIndex: 1 });
  });
});

describe('step predicates', () => {
  class IsVipClass {
    holds({ message }: { readonly message?: string }): boolean {
      return message === 'vip';
    }
  }
  StepPredicate('is-vip')(IsVipClass);
  const IsVip: Type<object> = IsVipClass;
  Injectable()(IsVip);
  const plan = defineStepPlan({ agent: 'desk', steps: VIP });

  it.each<[string, Provider]>([
    ['a class', IsVip],
    ['a class under another token', { provide: 'vip', useClass: IsVip }],
    ['an instance in place of the class', { provide: IsVip, useValue: { holds: () => true } }],
    ['an instance from a factory', { provide: IsVip, useFactory: () => new IsVip() }],
  ])('ORC-27 are found among the providers: %s', async (_, provider) => {
    const { app, session } = await start([plan], [provider]);
    const service = app.get(OrchestrationService, { strict: false });
    expect(await service.evaluateActiveStep(await session(), { message: 'vip' })).toMatchObject({ name: 'vip' });
  });

  it('ORC-27 count once under two tokens', async () => {
    const { app } = await start([plan], [IsVip, { provide: 'vip', useExisting: IsVip }]);
    expect(app.get(OrchestrationService, { strict: false })).toBeDefined();
  });

  it('ORC-27 stop the start if one has no provider, with an error that names plan, step and predicate', async () => {
    const error = await rejection(start([plan]), SessionsConfigurationError);
    expect(error.message).toBe('The plan of desk: step vip: no provider has @StepPredicate("is-vip"). Add one.');
  });

  it('ORC-27 two of one name, one without holds(), and one that is request-scoped are errors at the start', async () => {
    class Twin {
      holds = () => true;
    }
    StepPredicate('is-vip')(Twin);
    class Empty {}
    StepPredicate('is-vip')(Empty);
    class Scoped extends IsVipClass {}
    StepPredicate('is-vip')(Scoped);
    Injectable({ scope: Scope.REQUEST })(Scoped);
    const problem = async (...providers: Type<object>[]): Promise<string> =>
      (await rejection(start([plan], providers), SessionsConfigurationError)).message;

    expect(await problem(IsVip, Twin)).toBe('Two step predicates are named "is-vip". Names must be unique.');
    expect(await problem(Empty)).toBe('The step predicate "is-vip" must have a method holds().');
    expect(await problem(Scoped)).toContain('The step predicate "is-vip" is request-scoped');
  });
});
