import { SpanKind, trace } from '@opentelemetry/api';
import { type ReadableSpan } from '@opentelemetry/sdk-trace-base';
import {
  defineOrchestrator,
  type IntentResult,
  memoryAdapter,
  reply,
  SESSIONS_ADAPTER,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { OBSERVED_ADAPTER } from '../../lib/common/sessions.tokens.js';
import { eventually } from '../support/eventually.js';
import { turnRequest } from '../support/ledger-requests.js';
import { type Application, rejection, startApplication } from '../support/running-application.js';
import { recordTelemetry, treeOf, withoutPolls } from './recorded.js';

const recorded = recordTelemetry();
const AT_ONCE = { retry: { attempts: 2, backoff: { delayMs: 0 } } };

type Result = IntentResult<Record<string, unknown>>;
type Work = (turn: TurnContext) => Result | Promise<Result>;

describe('spans (NST-21)', () => {
  it('NST-21 records one trace for a turn across two processes: attempts, decisions, intents, steps, tools, store', async () => {
    let attempts = 0;
    const { api, sessionId, execute } = await twoProcesses(async (turn) => {
      const order = await turn.step('load order', () => {
        trace.getTracer('app').startSpan('GET /orders').end();
        return Promise.resolve('order of the sea');
      });
      await turn.tools.use('pay', 'call-1', () => 'paid in gold');
      turn.usage.add({ promptTokens: 3, completionTokens: 4 });
      attempts += 1;
      if (attempts === 1) throw Object.assign(new Error('the safe is open'), { code: 'EPIPE' });
      return reply(`here is ${order}`, { state: { owes: 'seven pearls' } });
    });

    await trace.getTracer('app').startActiveSpan('POST /chat', async (span) => {
      await execute('open the hatch');
      span.end();
    });

    const spans = recorded.spans();
    expect(treeOf(withoutPolls(spans))).toEqual([
      'POST /chat',
      '  submit desk',
      '    turns.accept',
      '    invoke_agent desk ! EPIPE',
      '      route',
      '      intent answer ! EPIPE',
      '        step load order',
      // The route.
      '          turns.saveStep',
      '          GET /orders',
      '          turns.saveStep',
      '        execute_tool pay',
      '          turns.saveStep',
      '      turns.retry',
      // The route is not called again: its result was stored before the first step.
      '    invoke_agent desk',
      '      intent answer',
      '      evaluate',
      '      turns.settle',
    ]);
    const [turn] = await api.turns.list({ sessionId });
    const own = { 'gen_ai.agent.name': 'desk', 'gen_ai.conversation.id': sessionId, 'agent_sessions.turn.id': turn.id };
    expect(named('submit desk', spans)).toMatchObject([
      { kind: SpanKind.PRODUCER, attributes: { ...own, 'agent_sessions.turn.duplicate': false } },
    ]);
    const attempt = { ...own, 'gen_ai.operation.name': 'invoke_agent' };
    expect(named('invoke_agent desk', spans)).toMatchObject([
      {
        kind: SpanKind.CONSUMER,
        attributes: {
          ...attempt,
          'agent_sessions.attempt.number': 1,
          'agent_sessions.attempt.outcome': 'retry',
          'error.type': 'EPIPE',
        },
      },
      {
        kind: SpanKind.CONSUMER,
        attributes: {
          ...attempt,
          'agent_sessions.attempt.number': 2,
          'agent_sessions.attempt.outcome': 'awaiting-input',
          'gen_ai.usage.input_tokens': 3,
          'gen_ai.usage.output_tokens': 4,
        },
      },
    ]);
    expect(named('intent answer', spans)[0].attributes).toMatchObject({ 'agent_sessions.intent': 'answer' });
    expect(named('step load order', spans)[0].attributes).toEqual({ 'agent_sessions.step': 'load order' });
    expect(named('execute_tool pay', spans)[0].attributes).toEqual({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'pay',
      'gen_ai.tool.call.id': 'call-1',
    });
    expect(named('turns.settle', spans)).toMatchObject([
      { kind: SpanKind.CLIENT, attributes: { 'db.operation.name': 'turns.settle', 'db.system.name': 'test-store' } },
    ]);
    const told = await recorded.text();
    for (const secret of ['hatch', 'the sea', 'gold', 'safe', 'pearls', 'ann']) expect(told).not.toContain(secret);
  });

  it('NST-21 ends the attempt at a wait, and continues the trace after the signal', async () => {
    const { api, sessionId, handle } = await twoProcesses(async (turn) => {
      await turn.waitFor('approval');
      return 'approved';
    });
    const { id } = await handle.submit('may I?', { sessionId });
    await eventually(async () => (await api.turns.get(id))?.status === 'waiting');
    await api.turns.signal(id, 'approval', { by: 'boss' });
    await api.turns.result(id);

    const attempts = await eventually(() => {
      const ended = named('invoke_agent desk', recorded.spans());
      return ended.length === 2 ? ended : null;
    });
    expect(attempts.map(({ attributes }) => attributes['agent_sessions.attempt.outcome'])).toEqual([
      'waiting',
      'awaiting-input',
    ]);
    const waits = named('wait approval', recorded.spans());
    expect(waits.map(({ attributes }) => attributes['agent_sessions.wait.outcome'])).toEqual([
      'awaiting-signal',
      'received',
    ]);
    expect(new Set([...attempts, ...waits].map((span) => span.spanContext().traceId)).size).toBe(1);
    expect(await recorded.text()).not.toContain('boss');
    // Only the wait for the first attempt is measured.
    expect(await recorded.points('agent_sessions.lane.wait.duration')).toMatchObject([{ value: 1 }]);
  });

  it('NST-21 marks permanent failures with the error type, and duplicate submits', async () => {
    const { execute, handle, sessionId } = await twoProcesses(() => {
      throw Object.assign(new Error('no'), { permanent: true, code: 'my card is 4000-1234' });
    });
    await rejection(execute('go'), TurnFailedError);
    expect(named('invoke_agent desk', recorded.spans())).toMatchObject([
      {
        attributes: { 'agent_sessions.attempt.outcome': 'failed', 'error.type': 'Error' },
        status: { message: 'Error' },
      },
    ]);
    await handle.submit('once', { sessionId, idempotencyKey: 'k' });
    const { id } = await handle.submit('once', { sessionId, idempotencyKey: 'k' });
    const again = named('submit desk', recorded.spans()).at(-1);
    expect(again?.attributes).toMatchObject({ 'agent_sessions.turn.duplicate': true, 'agent_sessions.turn.id': id });
    expect(await recorded.text()).not.toContain('4000');
  });

  it('NST-21 starts a new trace for a turn without a valid trace context', async () => {
    const { api, sessionId, settled } = await twoProcesses(() => 'done');
    for (const traceparent of [undefined, 'x', '00-00']) {
      const id = `t-${traceparent}`;
      const request = { input: { text: 'hello' }, ...(traceparent ? { traceparent } : {}) };
      await api.adapter.turns.accept(turnRequest(id, { sessionId, request }));
      await settled(id);
    }
    const attempts = named('invoke_agent desk', recorded.spans());
    expect(attempts.map(({ parentSpanContext }) => parentSpanContext)).toEqual([undefined, undefined, undefined]);
  });

  it('NST-21 excludes background polling, and records a claim as a root span', async () => {
    const { api, execute } = await twoProcesses(() => 'done');
    await execute('go');
    await api.sessions.create({ userId: 'ann' });
    await eventually(async () =>
      (await recorded.points('agent_sessions.store.operation.duration')).some(
        ({ attributes }) => attributes['db.operation.name'] === 'turns.due',
      ),
    );
    expect(named('turns.due', recorded.spans())).toEqual([]);
    expect(named('sessions.create', recorded.spans())).toEqual([]);
    expect(named('turns.claim', recorded.spans())[0]).toMatchObject({ parentSpanContext: undefined });
  });

  it('NST-21 excludes polling from the spans of result waiters and event readers', async () => {
    const { api, sessionId, handle } = await twoProcesses(async (turn) => {
      await turn.waitFor('approval');
      return 'approved';
    });
    const { id } = await handle.submit('may I?', { sessionId });
    await eventually(async () => (await api.turns.get(id))?.status === 'waiting');
    const begin = (name: string, work: () => Promise<unknown>): Promise<unknown> =>
      trace.getTracer('app').startActiveSpan(name, (span) => work().finally(() => span.end()));
    const over = [
      begin('GET /result', () => api.turns.result(id)),
      begin('GET /events', async () => {
        for await (const event of api.turns.readEvents(id)) if (event.type === 'settled') return;
      }),
    ];
    // The waiter polls once a second, the feed more often.
    const before = [await asked('turns.get'), await asked('events.read')];
    await eventually(async () => (await asked('turns.get')) >= before[0] + 5);
    await eventually(async () => (await asked('events.read')) > before[1] + 2);
    await api.turns.signal(id, 'approval');
    await Promise.all(over);

    const spans = recorded.spans();
    const traceOf = (name: string) =>
      treeOf(spans.filter((span) => span.spanContext().traceId === named(name, spans)[0].spanContext().traceId));
    expect(traceOf('GET /result')).toEqual(['GET /result', '  turns.get', '  turns.get']);
    expect(traceOf('GET /events')).toEqual(['GET /events', '  turns.get', '  events.last']);
  });

  it('NST-21 records nothing with telemetry: false, and does not wrap the store', async () => {
    const { api, execute, sessionId } = await twoProcesses(() => 'done', { telemetry: false });
    await execute('go');
    expect(recorded.spans()).toEqual([]);
    expect(await recorded.points('agent_sessions.turn.accepted')).toEqual([]);
    expect(api.app.get(OBSERVED_ADAPTER, { strict: false })).toBe(api.app.get(SESSIONS_ADAPTER, { strict: false }));
    expect((await api.turns.list({ sessionId }))[0].request).toEqual({ input: { text: 'go' } });
  });
});

interface Processes {
  readonly api: Application;
  readonly sessionId: string;
  readonly handle: ReturnType<Application['handle']>;
  readonly execute: (text: string) => Promise<unknown>;
  readonly settled: (turnId: string) => Promise<unknown>;
}

/** Starts two applications on one store: one accepts turns, the other runs them. */
async function twoProcesses(answer: Work, options: { telemetry?: boolean } = {}): Promise<Processes> {
  // The adapter of an application may be frozen.
  const adapter = Object.freeze({ ...memoryAdapter(), system: 'test-store' });
  const desk = defineOrchestrator({
    name: 'desk',
    route: () => 'answer',
    evaluate: () => true,
    iterate: true,
    intents: { answer },
  });
  const shared = { adapter, orchestrators: [desk], turns: AT_ONCE, ...options };
  await startApplication({ ...shared, role: 'work' });
  const api = await startApplication({ ...shared, role: 'submit' });
  const sessionId = await api.session();
  const settled = async (turnId: string): Promise<unknown> => {
    const result = await api.turns.result(turnId).catch((error: unknown) => error);
    // The span ends shortly after the turn.
    if (options.telemetry !== false) {
      await eventually(() => recorded.spans().some(({ name, attributes }) => isLast(name, attributes, turnId)));
    }
    return result;
  };
  const execute = async (text: string): Promise<unknown> => {
    const { id } = await api.handle(desk).submit(text, { sessionId });
    const result = await settled(id);
    if (result instanceof Error) throw result;
    return result;
  };
  return { api, sessionId, handle: api.handle(desk), execute, settled };
}

function isLast(name: string, attributes: ReadableSpan['attributes'], turnId: string): boolean {
  const outcome = String(attributes['agent_sessions.attempt.outcome']);
  return name === 'invoke_agent desk' && attributes['agent_sessions.turn.id'] === turnId && outcome !== 'retry';
}

/** Returns how often an operation queried the store. */
async function asked(operation: string): Promise<number> {
  const points = await recorded.points('agent_sessions.store.operation.duration');
  return points.find(({ attributes }) => attributes['db.operation.name'] === operation)?.value ?? 0;
}

function named(name: string, spans: readonly ReadableSpan[]): ReadableSpan[] {
  return spans.filter((span) => span.name === name);
}
