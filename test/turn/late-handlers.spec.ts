import { setTimeout as delay } from 'node:timers/promises';
import { defineOrchestrator, memoryAdapter, type TurnContext } from 'nestjs-agent-sessions';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { aborted, gate, startApplication } from '../support/running-application.js';

it('DAY-17 a handler that goes on after its turn was stopped is logged once, with the intent and the cure', async () => {
  const { lines, logger } = capturingLogger();
  const begun = [gate(), gate(), gate()];
  const never = gate();
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      ignores: async () => (begun[0].open(), never.pass()),
      obeys: async ({ signal }: TurnContext) => (begun[1].open(), void (await aborted(signal))),
      // The package leaves these promises pending (FIX-87).
      waits: async (turn: TurnContext) => {
        const waits = ['a', 'b'].map((name) => turn.step(name, () => never.pass()));
        begun[2].open();
        await Promise.all(waits);
      },
    },
    route: ({ input }) => input.text,
  });
  const { turns, session } = await startApplication({ adapter: memoryAdapter(), orchestrators: [desk], logger });
  for (const [index, intent] of ['ignores', 'obeys', 'waits'].entries()) {
    const { id } = await turns.submit('desk', intent, { sessionId: await session() });
    await begun[index].pass();
    await turns.cancel(id);
  }

  const late = (): string[] => lines.filter((line) => line.includes('still runs'));
  await eventually(() => late().length > 0, { limitMs: 30_000 });
  await delay(1000);
  expect(late()).toEqual([
    expect.stringMatching(/^warn The handler of turn .+ still runs in intent ignores 5 s after /),
  ]);
  expect(late()[0]).toContain('fetch(url, { signal: turn.signal })');
  never.open();
}, 60_000);

it('DAY-17 a handler that goes on when its application has closed is not logged, because the process ends', async () => {
  const { lines, logger } = capturingLogger();
  const [begun, never] = [gate(), gate()];
  const desk = defineOrchestrator({
    name: 'desk',
    intents: { ignores: async () => (begun.open(), never.pass()) },
  });
  const { turns, session, close } = await startApplication({ adapter: memoryAdapter(), orchestrators: [desk], logger });
  const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
  await begun.pass();
  await turns.cancel(id);
  await close();

  await delay(6000);
  expect(lines.filter((line) => line.includes('still runs'))).toEqual([]);
  never.open();
}, 60_000);
