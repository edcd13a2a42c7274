import { isDeepStrictEqual } from 'node:util';
import { defineOrchestrator, memoryAdapter, type SessionsAdapter } from 'nestjs-agent-sessions';
import { TurnFencedError } from 'nestjs-agent-sessions/adapter';
import { SessionSweeper } from '../../lib/maintenance/session-sweeper.service.js';
import { eventually } from '../support/eventually.js';
import { gate, startApplication } from '../support/running-application.js';
import { type Point, recordTelemetry } from './recorded.js';

const recorded = recordTelemetry();
const AGENT = { 'gen_ai.agent.name': 'desk' };
const AT_ONCE = { retry: { attempts: 2, backoff: { delayMs: 0 } } };

describe('metrics (NST-21)', () => {
  it('NST-21 counts turns by orchestrator and status, with attempts, retries and lane waits', async () => {
    const held = gate();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: async ({ input, attempt }) => {
          await held.pass();
          if (input.text === 'flaky' && attempt === 1) throw Object.assign(new Error('no'), { code: 'EPIPE' });
          if (input.text === 'broken') throw Object.assign(new Error('no'), { permanent: true });
          return 'ok';
        },
      },
    });
    const { handle, session, turns } = await startApplication({ orchestrators: [desk], turns: AT_ONCE });
    const sessionId = await session();
    const submitted = [];
    for (const text of ['fine', 'flaky', 'broken']) submitted.push(await handle(desk).submit(text, { sessionId }));
    held.open();
    await Promise.all(submitted.map(({ id }) => turns.result(id).catch(() => undefined)));

    const settled = await eventually(async () => {
      const points = await recorded.points('agent_sessions.turn.settled');
      return points.reduce((all, { value }) => all + value, 0) === 3 ? points : null;
    });
    const status = (name: string): object => ({ ...AGENT, 'agent_sessions.turn.status': name });
    expect(byAttributes(settled)).toEqual([
      { attributes: { ...status('awaiting-input') }, value: 2, unit: '{turn}' },
      { attributes: { ...status('failed'), 'error.type': 'Error' }, value: 1, unit: '{turn}' },
    ]);
    expect(await recorded.points('agent_sessions.turn.accepted')).toMatchObject([
      { attributes: AGENT, value: 3, unit: '{turn}' },
    ]);
    expect(await recorded.points('agent_sessions.turn.retries')).toMatchObject([
      { attributes: { ...AGENT, 'error.type': 'EPIPE' }, value: 1, unit: '{retry}' },
    ]);
    const outcome = (name: string): object => ({ ...AGENT, 'agent_sessions.attempt.outcome': name });
    expect(byAttributes(await recorded.points('agent_sessions.turn.attempt.duration'))).toMatchObject([
      { attributes: outcome('awaiting-input'), value: 2, unit: 's' },
      { attributes: { ...outcome('failed'), 'error.type': 'Error' }, value: 1, unit: 's' },
      { attributes: { ...outcome('retry'), 'error.type': 'EPIPE' }, value: 1, unit: 's' },
    ]);
    expect(await recorded.points('agent_sessions.lane.wait.duration')).toMatchObject([
      { attributes: AGENT, value: 3, unit: 's' },
    ]);
    const told = await recorded.metricText();
    for (const id of [sessionId, ...submitted.map(({ id }) => id)]) expect(told).not.toContain(id);
  });

  it('NST-21 measures the wait of a turn in its lane in seconds', async () => {
    const held = gate();
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => held.pass().then(() => 'ok') } });
    let now = Date.now();
    const adapter = memoryAdapter({ clock: () => now });
    const { handle, session, turns } = await startApplication({ adapter, orchestrators: [desk], turns: AT_ONCE });
    const sessionId = await session();
    const first = await handle(desk).submit('first', { sessionId });
    await eventually(async () => (await turns.get(first.id))?.status === 'running');
    const second = await handle(desk).submit('second', { sessionId });
    now += 5000;
    held.open();
    await turns.result(second.id);
    const waits = await eventually(async () => {
      const points = await recorded.points('agent_sessions.lane.wait.duration');
      return points.reduce((all, { value }) => all + value, 0) === 2 ? points : null;
    });
    expect(waits.reduce((all, { sum }) => all + sum, 0)).toBe(5);
  });

  it('NST-21 counts conflicts by operation and code, and fenced attempts as lost', async () => {
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'ok' } });
    const adapter = memoryAdapter();
    const settle = adapter.turns.settle.bind(adapter.turns);
    let fenced = true;
    const turns: SessionsAdapter['turns'] = Object.assign(Object.create(adapter.turns) as SessionsAdapter['turns'], {
      settle: (...args: Parameters<typeof settle>) => {
        if (!fenced) return settle(...args);
        fenced = false;
        return Promise.reject(new TurnFencedError('s', 't', 1));
      },
    });
    const { handle, session } = await startApplication({
      adapter: { ...adapter, turns },
      orchestrators: [desk],
      turns: { ...AT_ONCE, leaseMs: 100 },
    });
    await handle(desk).execute('hello', { sessionId: await session() });
    expect(await recorded.points('agent_sessions.store.conflicts')).toMatchObject([
      {
        attributes: { 'db.operation.name': 'turns.settle', 'error.type': 'TURN_FENCED' },
        value: 1,
        unit: '{conflict}',
      },
    ]);
    const outcomes = (await recorded.points('agent_sessions.turn.attempt.duration')).map(
      ({ attributes }) => attributes['agent_sessions.attempt.outcome'],
    );
    expect(outcomes).toContain('lost');
  });

  it('NST-21 counts sweeps and their results', async () => {
    let now = Date.now();
    const adapter = memoryAdapter({ clock: () => now });
    const { app, sessions, session } = await startApplication({
      adapter,
      ttlSeconds: 60,
      sweep: { cron: '0 0 1 1 *', expireAfterSeconds: 3600 },
    });
    for (const id of [await session(), await session()]) await sessions.touch(id);
    const sweeper = app.get(SessionSweeper, { strict: false });
    now += 120_000;
    await sweeper.run();
    now += 7_200_000;
    await sweeper.run();
    adapter.leases.acquire = () => Promise.resolve(null);
    await sweeper.run();
    adapter.leases.acquire = () => Promise.reject(new Error('away'));
    await sweeper.run();

    const outcome = (name: string): object => ({ 'agent_sessions.sweep.outcome': name });
    expect(byAttributes(await recorded.points('agent_sessions.sweep.runs'))).toEqual([
      { attributes: outcome('done'), value: 2, unit: '{run}' },
      { attributes: outcome('failed'), value: 1, unit: '{run}' },
      { attributes: outcome('skipped'), value: 1, unit: '{run}' },
    ]);
    const action = (name: string): object => ({ 'agent_sessions.sweep.action': name });
    expect(byAttributes(await recorded.points('agent_sessions.sweep.items'))).toEqual([
      { attributes: action('expired'), value: 2, unit: '{item}' },
      { attributes: action('suspended'), value: 2, unit: '{item}' },
    ]);
    expect(sweeper.counts).toMatchObject({ runs: 2, skipped: 1, failed: 1 });
  });

  it('NST-21 counts connected readers of events', async () => {
    const held = gate();
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => held.pass().then(() => 'ok') } });
    const { handle, session } = await startApplication({ orchestrators: [desk] });
    const stream = handle(desk).stream('hello', { sessionId: await session() });
    const read = (async () => {
      for await (const event of stream) expect(event).toBeDefined();
    })();
    const open = async (): Promise<unknown> => (await recorded.points('agent_sessions.streams'))[0];
    await eventually(async () =>
      isDeepStrictEqual(await open(), { attributes: {}, value: 1, sum: 0, unit: '{stream}' }),
    );
    held.open();
    await read;
    expect(await open()).toMatchObject({ value: 0 });
  });
});

function byAttributes(points: readonly Point[]): Omit<Point, 'sum'>[] {
  return points
    .map(({ attributes, value, unit }) => ({ attributes, value, unit }))
    .sort((a, b) => (JSON.stringify(a.attributes) < JSON.stringify(b.attributes) ? -1 : 1));
}
