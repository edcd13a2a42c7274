import { defineOrchestrator, TurnFailedError } from 'nestjs-agent-sessions';
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
