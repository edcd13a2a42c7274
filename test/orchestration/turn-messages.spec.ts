import { type OrchestrationStep, ToolNotAllowedError } from 'nestjs-agent-sessions';
import { rejection, SAMPLED_STORES } from '../support/running-application.js';
import { startDesk, useAll } from './turn-desk.js';

const SHOP: readonly OrchestrationStep[] = [
  { name: 'browse', isDefault: true, availableTools: { denied: ['pay'] } },
  {
    name: 'cancel',
    conditions: [{ type: 'message_matches', value: 'cancel that' }],
    availableTools: { allowed: ['drop'] },
  },
  {
    name: 'check-out',
    conditions: [{ type: 'message_matches', value: 'check out' }],
    sequence: ['check_stock', 'pay'],
    onComplete: 'browse',
  },
  { name: 'search', conditions: [{ type: 'tool_used', value: 'search' }] },
];

describe.each(SAMPLED_STORES)('conditions on the message of a turn over $name', ({ open }) => {
  it('FIX-22 lead to a step once: after its sequence the same message does not enter it again', async () => {
    const { say, session, state } = await startDesk(open(), { steps: SHOP });
    const sessionId = await session();
    await say(sessionId, (turn) => useAll(turn, 'check_stock', 'pay', 'send_ticket'), 'check out');
    expect(await state(sessionId)).toMatchObject({
      activeStep: 'browse',
      toolHistory: [{ step: 'check-out' }, { step: 'check-out' }, { tool: 'send_ticket', step: 'browse' }],
    });
    await say(sessionId, (turn) => useAll(turn, 'check_stock', 'pay'), 'check out again');
    expect(await state(sessionId)).toMatchObject({ activeStep: 'browse' });
  });

  it('FIX-22 leave an unfinished sequence when a turn begins, and keep its progress', async () => {
    const { say, session, state } = await startDesk(open(), { steps: SHOP });
    const sessionId = await session();
    await say(sessionId, (turn) => useAll(turn, 'check_stock'), 'check out');
    await say(
      sessionId,
      async (turn) => {
        await rejection(
          turn.tools.use('pay', 'p', () => null),
          ToolNotAllowedError,
        );
        await useAll(turn, 'drop');
      },
      'No, cancel that',
    );
    expect(await state(sessionId)).toMatchObject({ activeStep: 'cancel', progress: { 'check-out': 1 } });
    await say(sessionId, (turn) => useAll(turn, 'pay'), 'I will check out');
    expect(await state(sessionId)).toMatchObject({ activeStep: 'browse', progress: { 'check-out': 0, cancel: 0 } });
  });

  it('FIX-22 keep the step that they led to, and leave others to the uses of tools', async () => {
    const { say, session, state } = await startDesk(open(), { steps: SHOP });
    const sessionId = await session();
    await say(sessionId, (turn) => useAll(turn, 'search'));
    expect(await state(sessionId)).toMatchObject({ activeStep: 'search' });
    const steps: unknown[] = [];
    await say(
      sessionId,
      async (turn) => {
        for (const tool of ['check_stock', 'pay', 'send_ticket']) {
          await useAll(turn, tool);
          steps.push(turn.tools.activeStep?.name);
        }
      },
      'check out',
    );
    expect(steps).toEqual(['check-out', 'browse', 'search']);
  });

  it.each([
    ['not', { type: 'not', condition: { type: 'message_matches', value: 'yes' } }, 'no'],
    [
      'any_of',
      {
        type: 'any_of',
        conditions: [
          { type: 'message_matches', value: 'yes' },
          { type: 'tool_used', value: 'b' },
        ],
      },
      'yes',
    ],
  ] as const)('FIX-22 do not take over during the turn inside %s', async (_, condition, text) => {
    const steps: OrchestrationStep[] = [
      { name: 'start', isDefault: true },
      { name: 'next', conditions: [{ type: 'tool_used', value: 'a' }, condition] },
    ];
    const { say, session, state } = await startDesk(open(), { steps });
    const sessionId = await session();
    await say(sessionId, (turn) => useAll(turn, 'a', 'c'), text);
    expect((await state(sessionId))?.activeStep).toBe('start');
    await say(sessionId, () => undefined, text);
    expect((await state(sessionId))?.activeStep).toBe('next');
  });

  it('FIX-22 leave alternatives that do not ask the message to the uses of tools', async () => {
    const conditions: OrchestrationStep['conditions'] = [
      {
        type: 'any_of',
        conditions: [
          { type: 'message_matches', value: 'yes' },
          { type: 'tool_used', value: 'b' },
        ],
      },
    ];
    const { say, session, state } = await startDesk(open(), { steps: [{ name: 'next', conditions }] });
    const sessionId = await session();
    await say(sessionId, (turn) => useAll(turn, 'a'), 'no');
    expect((await state(sessionId))?.activeStep).toBeUndefined();
    await say(sessionId, (turn) => useAll(turn, 'b'), 'no');
    expect((await state(sessionId))?.activeStep).toBe('next');
  });
});
