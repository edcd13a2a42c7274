import { defineOrchestrator, type IntentReply, turnOutcome, reply } from 'nestjs-agent-sessions';
import { LASTING_STORES, LIVE_STORES, startApplication } from '../support/running-application.js';

/** Answers with data first, then with null. */
const refined = defineOrchestrator({
  name: 'refined',
  iterate: true,
  maxIterations: 2,
  route: ({ iteration }) => (iteration === 0 ? 'draft' : 'refine'),
  intents: {
    draft: () => reply('a draft', { data: { score: 1 } }),
    refine: () => reply('no score', { data: null }),
  },
});

describe.each(LIVE_STORES)('data: null of a reply over $name', ({ open }) => {
  it('FIX-09 keeps data: null in results, records and streams', async () => {
    const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => reply('none', { data: null }) } });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const result = await handle(desk).execute('hi', { sessionId });
    expect(result).toMatchObject({ reply: 'none', data: null });
    expect((await turns.get(result.id))?.reply).toEqual({ text: 'none', data: null });

    const stream = handle(desk).stream('hi', { sessionId });
    const ends: unknown[] = [];
    for await (const event of stream) if (event.type === 'settled') ends.push(event.data);
    expect(ends).toMatchObject([{ reply: 'none', data: null }]);
    expect(await stream.result).toMatchObject({ reply: 'none', data: null });
  });

  it('FIX-09 lets data: null of a later iteration replace earlier data', async () => {
    const { handle, session } = await startApplication({ adapter: open(), orchestrators: [refined] });
    const result = await handle(refined).execute('hi', { sessionId: await session() });
    expect(result).toMatchObject({ reply: 'no score', data: null });
  });

  it('FIX-09 lets data: null of a later intent replace earlier data, and passes it to evaluate', async () => {
    let seen: readonly IntentReply[] = [];
    const desk = defineOrchestrator({
      name: 'desk',
      iterate: true,
      route: () => ['first', 'second', 'third'],
      intents: {
        first: () => reply('first', { data: 1 }),
        second: () => turnOutcome({ data: null }),
        third: () => reply('third'),
      },
      evaluate: (_, replies) => ((seen = replies), true),
    });
    const { handle, session } = await startApplication({ adapter: open(), orchestrators: [desk] });
    expect(await handle(desk).execute('hi', { sessionId: await session() })).toMatchObject({ data: null });
    expect(seen.map((one) => 'data' in one && one.data)).toEqual([1, null, false]);
  });
});

describe.each(LASTING_STORES)('data: null of a stored reply over $name', ({ create }) => {
  it('FIX-09 keeps data: null for a process that starts later', async () => {
    const adapter = create();
    const { handle, session, close } = await startApplication({ adapter: adapter(), orchestrators: [refined] });
    const { id } = await handle(refined).execute('hi', { sessionId: await session() });
    await close();
    const { turns } = await startApplication({ adapter: adapter(), orchestrators: [refined] });
    expect(await turns.result(id)).toMatchObject({ data: null });
  });
});
