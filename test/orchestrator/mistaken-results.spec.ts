import { BadRequestException, Logger } from '@nestjs/common';
import { defineOrchestrator, END_TURN, type OrchestratorConfig, reply, TurnFailedError } from 'nestjs-agent-sessions';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { rejection, SAMPLED_STORES, startApplication } from '../support/running-application.js';

describe.each(SAMPLED_STORES)('results of intents that were meant as a reply, with $name', ({ open }) => {
  it.each([
    ['text', { text: 'Your order is shipped.' }],
    ['text', { text: 'Your order is shipped.', state: { orderId: 7 }, status: 'completed' }],
    ['reply', { reply: 'Your order is shipped.' }],
  ])('DAY-16 fails the turn for an object with the key %s, with the cure', async (key, result) => {
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => result } });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const error = await rejection(handle(desk).execute('hi', { sessionId: await session() }), TurnFailedError);
    expect(await turns.get(error.turnId)).toMatchObject({
      failures: 1,
      error: {
        code: 'ORCHESTRATOR_RESULT',
        message:
          `Orchestrator desk: intent answer returned an object with the key ${key}, which is not a reply but a change of the state. ` +
          `To answer, return reply(text). To set this key of the state, return turnOutcome({ state: { ${key} } }).`,
      },
    });
  });

  it.each<[string, OrchestratorConfig['intents'][string], Partial<OrchestratorConfig>, string]>([
    [
      'an unknown option of reply',
      () => reply('hi', { states: { n: 1 } } as object),
      {},
      'intent answer: the option "states" of its reply is not a known key. Did you mean state? ' +
        'Allowed: state, status, data, messages. Change its name.',
    ],
    [
      'END_TURN of evaluate',
      () => 'hi',
      { iterate: true, evaluate: () => ({ satisfied: false, reassignTo: END_TURN }) as never },
      'evaluate returned no intent in `reassignTo`. To end the turn, return { satisfied: true }. ' +
        'To ask the route, omit `reassignTo`.',
    ],
    [
      'an empty list of evaluate',
      () => 'hi',
      { iterate: true, evaluate: () => ({ satisfied: false, reassignTo: [] }) },
      'evaluate returned no intent in `reassignTo`. To end the turn, return { satisfied: true }. ' +
        'To ask the route, omit `reassignTo`.',
    ],
  ])('DAY-16 fails the turn at once for %s, with the cure', async (_, answer, config, problem) => {
    const desk = defineOrchestrator({ name: 'desk', intents: { answer }, ...config });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const error = await rejection(handle(desk).execute('hi', { sessionId: await session() }), TurnFailedError);
    expect(await turns.get(error.turnId)).toMatchObject({
      failures: 1,
      error: { code: 'ORCHESTRATOR_RESULT', message: `Orchestrator desk: ${problem}` },
    });
  });

  it('DAY-17 says in the log that the caller does not receive an HTTP exception of a handler', async () => {
    const { lines, logger } = capturingLogger();
    const desk = defineOrchestrator({
      name: 'desk',
      intents: {
        answer: ({ input }) => {
          throw input.text === 'http' ? new BadRequestException('The order id is missing.') : new Error('no');
        },
      },
    });
    const retry = { attempts: 2, backoff: { type: 'fixed', delayMs: 1 } } as const;
    const { handle, session } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry },
    });
    Logger.overrideLogger(logger);
    await rejection(handle(desk).execute('http', { sessionId: await session() }), TurnFailedError);
    await rejection(handle(desk).execute('other', { sessionId: await session() }), TurnFailedError);
    await eventually(() => lines.filter((line) => line.includes('of desk failed in attempt')).length === 4);
    Logger.overrideLogger(false);

    const hint =
      'The caller does not receive an HTTP exception of a handler. To tell the user, return reply(...). To fail without ' +
      'retries, throw a PermanentTurnError.';
    expect(lines.filter((line) => line.includes(hint))).toHaveLength(2);
  });

  it('DAY-16 changes the key of a state that has it', async () => {
    const notes = defineOrchestrator({
      name: 'notes',
      initialState: () => ({ text: '' }),
      intents: { write: ({ input }) => ({ text: input.text }) },
    });
    const { handle, session, checkpoints } = await startApplication({ adapter: open(), orchestrators: [notes] });
    const sessionId = await session();
    expect(await handle(notes).execute('milk', { sessionId })).toMatchObject({ reply: null });
    expect(await checkpoints.load('notes', sessionId)).toMatchObject({ state: { text: 'milk' } });
  });
});
