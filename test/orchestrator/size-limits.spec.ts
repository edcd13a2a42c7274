import {
  defineOrchestrator,
  type OrchestratorConfig,
  turnOutcome,
  reply,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

const LIMITS = { maxStepBytes: 2000, maxReplyBytes: 1000 };
const text = (length: number): string => 'x'.repeat(length);

type Answer = OrchestratorConfig['intents'][string];

describe.each(LIVE_STORES)('sizes of what a handler gives over $name', ({ open }) => {
  async function run(answer: Answer, turns: object = LIMITS, more: Partial<OrchestratorConfig> = {}) {
    const desk = defineOrchestrator({ name: 'desk', intents: { answer }, ...more });
    const app = await startApplication({ adapter: open(), orchestrators: [desk], turns });
    const sessionId = await app.session();
    const turn = await app.handle(desk).submit('hi', { sessionId });
    const result = app.turns.result(turn.id);
    return { app, sessionId, id: turn.id, result };
  }

  it('FIX-13 rejects results of steps and tool calls above maxStepBytes, and does not store them', async () => {
    const calls: Answer[] = [
      async (turn: TurnContext) => void (await turn.step('load', () => text(2000))),
      async (turn: TurnContext) => void (await turn.tools.use('search', 'call-1', () => ({ hits: [text(2000)] }))),
    ];
    for (const call of calls) {
      const { app, id, result } = await run(call);
      await rejection(result, TurnFailedError);
      const record = await app.turns.get(id);
      expect(record).toMatchObject({ failures: 1, error: { name: 'TooLargeError', code: 'TOO_LARGE' } });
      expect(await app.adapter.turns.steps(id)).toEqual([]);
    }
  });

  it('FIX-13 refuses replies, data, messages and decisions above maxReplyBytes', async () => {
    const answers: Answer[] = [
      () => reply(text(1000)),
      () => reply('ok', { data: { list: [text(1000)] } }),
      () => turnOutcome({ messages: [{ role: 'assistant', content: text(1000) }] }),
    ];
    for (const answer of answers) {
      const { app, sessionId, id, result } = await run(answer);
      await rejection(result, TurnFailedError);
      expect(await app.turns.get(id)).toMatchObject({ failures: 1, error: { code: 'TOO_LARGE' } });
      expect(await app.adapter.conversations.page(sessionId)).toEqual([]);
    }
    const explain = { route: () => ({ intents: 'answer', reasoning: text(1000) }) };
    const { app, id, result } = await run(() => 'ok', LIMITS, explain);
    await rejection(result, TurnFailedError);
    expect(await app.turns.get(id)).toMatchObject({ error: { code: 'TOO_LARGE' } });
  });

  it('FIX-13 accepts values of exactly the limits, counted in bytes of JSON', async () => {
    const answer: Answer = async (turn) => {
      const step = await turn.step('load', () => text(1998));
      // {"text":"...","data":null} takes 23 bytes more than the string.
      return reply(`${text(1000 - 23)}`, { state: { length: step.length } });
    };
    expect((await (await run(answer)).result).reply).toHaveLength(977);
    await rejection((await run(() => reply('é'.repeat(489)))).result, TurnFailedError);
  });

  it('FIX-13 has defaults of 4 MiB for steps and 1 MiB for replies', async () => {
    const mebibyte = 1_048_576;
    const answer: Answer = async (turn) => {
      const { length } = await turn.step('load', () => text(4 * mebibyte - 2));
      return reply(text(mebibyte - 23), { state: { length } });
    };
    expect(await (await run(answer, {})).result).toMatchObject({ status: 'awaiting-input' });
    await rejection((await run((turn) => turn.step('load', () => text(4 * mebibyte)), {})).result, TurnFailedError);
    await rejection((await run(() => text(mebibyte), {})).result, TurnFailedError);
  });

  it('FIX-13 clips name and code of a stored error', async () => {
    const error = Object.assign(new Error('no'), { name: text(1_000_000), code: text(1_000_000), permanent: true });
    const { app, id, result } = await run(() => Promise.reject(error));
    await rejection(result, TurnFailedError);
    expect(await app.turns.get(id)).toMatchObject({ error: { name: `${text(256)}...`, code: `${text(256)}...` } });
  });
});
