import { OrchestrationEvents, type OrchestrationStep, ToolNotAllowedError } from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate, LIVE_STORES, rejection } from '../support/running-application.js';
import { startDesk, useAll } from './turn-desk.js';

const STEPS: readonly OrchestrationStep[] = [
  { name: 'booking', isDefault: true, sequence: ['search', 'book'], onComplete: 'paying' },
  { name: 'paying', sequence: ['pay'] },
];

describe.each(LIVE_STORES)('events of what turns do, over $name', ({ open }) => {
  it('ORC-32 are emitted in order once the turn is stored, and not before', async () => {
    const { app, say, session, state, events } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    const stored: unknown[] = [];
    app.app.get(OrchestrationEvents, { strict: false }).on('step-changed', async () => {
      stored.push((await state(sessionId))?.activeStep);
    });
    const { pass, open: release } = gate();
    let used = false;
    const running = say(sessionId, async (turn) => {
      await useAll(turn, 'search', 'book');
      await turn.tools.use('pay', 'p', () => Promise.reject(new Error('no'))).catch(() => null);
      used = true;
      await pass(turn.signal);
    });
    await eventually(() => used);
    expect(events).toEqual([]);
    release();
    await running;
    await eventually(() => stored.length > 0);

    const desk = { agent: 'desk', sessionId };
    const ids = { callId: expect.any(String) as string, turnId: expect.any(String) as string };
    expect(events).toEqual([
      { ...desk, type: 'created' },
      { ...desk, type: 'tool-recorded', tool: 'search', step: 'booking', outcome: 'succeeded', ...ids },
      { ...desk, type: 'sequence-advanced', step: 'booking', index: 1 },
      { ...desk, type: 'tool-recorded', tool: 'book', step: 'booking', outcome: 'succeeded', ...ids },
      { ...desk, type: 'sequence-advanced', step: 'booking', index: 2 },
      { ...desk, type: 'sequence-completed', step: 'booking' },
      { ...desk, type: 'step-changed', from: 'booking', to: 'paying' },
      { ...desk, type: 'tool-recorded', tool: 'pay', step: 'paying', outcome: 'failed', ...ids, callId: 'p' },
    ]);
    expect(stored).toEqual(['paying']);
  });

  it('ORC-32 include only the violations of failed attempts', async () => {
    const { say, session, events } = await startDesk(open(), { steps: STEPS });
    const sessionId = await session();
    await rejection(
      say(sessionId, async (turn) => {
        await useAll(turn, 'search');
        await turn.tools.use('pay', 'p', () => null);
      }),
      ToolNotAllowedError,
    );
    const refused = {
      type: 'tool-violated',
      agent: 'desk',
      sessionId,
      tool: 'pay',
      step: 'booking',
      allowed: ['book'],
    };
    // The turn stored a use before it failed (FIX-88).
    await eventually(() => events.length > 1);
    expect(events).toEqual([refused, { type: 'created', agent: 'desk', sessionId }]);

    await say(sessionId, async (turn) => {
      await useAll(turn, 'search');
      if (turn.attempt < 3) throw new Error('again');
    });
    await eventually(() => events.length > 2);
    expect(events.map(({ type }) => type)).toEqual(['tool-violated', 'created', 'tool-recorded', 'sequence-advanced']);
  });
});
