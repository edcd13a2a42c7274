import { join } from 'node:path';
import { type Turn } from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { SampleProcess } from '../support/sample-process.js';
import { temporaryFolder } from '../support/stores.js';
import { withLedger } from './stored-turns.js';
import { Customer } from './support-desk-client.js';

const QUESTION = 'Please ask the warehouse about order 7';
const ANSWER = 'Parcel 7 has left the warehouse.';

describe('the support desk when its process ends', () => {
  let file: string;
  let sample: SampleProcess;

  beforeEach(async () => {
    file = join(temporaryFolder(), 'support-desk.db');
    sample = await SampleProcess.start(file);
  });

  afterEach(() => sample.stop('SIGKILL'));

  it('TRN-15 SIGKILL in the middle of a turn: after a restart the turn finishes by itself, once', async () => {
    const ann = await Customer.arrive(sample);
    const lost = ann.trySay(QUESTION).catch(() => 'the connection broke');
    await eventually(async () => (await turnsOf(ann))[0]?.status === 'running');
    await sample.stop('SIGKILL');
    expect(await lost).toBe('the connection broke');
    expect(await turnsOf(ann)).toMatchObject([{ status: 'running' }]);

    // No client asks again: the process itself must resume the turn.
    sample = await SampleProcess.start(file);
    await eventually(async () => (await turnsOf(ann))[0]?.settledAt);

    const [turn, ...others] = await turnsOf(ann);
    expect(others).toEqual([]);
    expect(turn).toMatchObject({ status: 'awaiting-input', turnIndex: 0, reply: { text: ANSWER } });
    const again = ann.at(sample);
    expect(await again.turn(turn?.id ?? '')).toMatchObject({ status: 'awaiting-input', reply: ANSWER });
    expect(await again.messages()).toMatchObject([
      { position: 1, turnId: turn?.id, role: 'user', content: QUESTION },
      { position: 2, turnId: turn?.id, role: 'assistant', content: ANSWER },
    ]);
    expect(
      await withLedger(file, ({ checkpoints }) => checkpoints.history('support-desk', ann.sessionId)),
    ).toHaveLength(1);
  });

  it('TRN-05 TRN-15 SIGKILL: what waited behind the turn, and what comes after the restart, stays behind it', async () => {
    const ann = await Customer.arrive(sample);
    const lost = [QUESTION, 'Where is order 8?'].map(async (text, i) => {
      // In this order.
      await eventually(async () => (await turnsOf(ann)).length === i);
      return ann.trySay(text, { 'idempotency-key': text }).catch(() => null);
    });
    await eventually(async () => (await turnsOf(ann)).map(({ status }) => status).join() === 'running,queued');
    await sample.stop('SIGKILL');
    await Promise.all(lost);

    sample = await SampleProcess.start(file);
    const [question] = await turnsOf(ann);
    const next = ann.at(sample).say('Where is order 9?');
    // A client that did not see its answer asks again under the same key.
    const again = await ann.at(sample).say(QUESTION, { 'idempotency-key': QUESTION });

    expect(again).toMatchObject({ id: question?.id, turnIndex: 0, reply: ANSWER });
    expect(await next).toMatchObject({ turnIndex: 2, reply: 'Order 9 is being packed.' });
    expect((await ann.at(sample).messages()).map(({ content }) => content)).toEqual([
      QUESTION,
      ANSWER,
      'Where is order 8?',
      'Order 8 is delivered.',
      'Where is order 9?',
      'Order 9 is being packed.',
    ]);
  });

  it('TRN-14 SIGTERM lets the running turn finish and answer, refuses new ones, and exits with 0', async () => {
    const ann = await Customer.arrive(sample);
    const bob = await Customer.arrive(sample, 'bob');
    const answer = ann.say(QUESTION);
    await eventually(async () => (await turnsOf(ann))[0]?.status === 'running');

    const stopped = within(10_000, sample.stop('SIGTERM'));
    const refused = await eventually(async () => {
      const late = await bob.trySay('Where is order 8?');
      return late.status === 201 ? null : late;
    });

    expect(refused).toMatchObject({ status: 503, body: { code: 'SHUTTING_DOWN' } });
    expect(await answer).toMatchObject({ reply: ANSWER });
    expect(await stopped).toEqual({ code: 0, signal: null });
    expect(await turnsOf(ann)).toMatchObject([{ status: 'awaiting-input', failures: 0 }]);
  });

  it('NST-05 SIGTERM stops an idle process at once, with 0, and another can start on its file', async () => {
    const ann = await Customer.arrive(sample);
    await ann.say('hello');

    expect(await within(5000, sample.stop('SIGTERM'))).toEqual({ code: 0, signal: null });

    sample = await SampleProcess.start(file);
    expect(await ann.at(sample).say('hello')).toMatchObject({ turnIndex: 1 });
  });

  it('DAY-19 prints a command that starts it again on its port and file, without npm and the compiler', async () => {
    const ann = await Customer.arrive(sample);
    await ann.say('hello');
    await sample.stop('SIGKILL');
    const { url, restartLine } = sample;
    expect(restartLine).toBe(`PORT=${new URL(url).port} SESSIONS_DB=${file} node build/sample/01-support-desk/main.js`);

    sample = await SampleProcess.restart(sample);

    expect(sample.url).toBe(url);
    expect(await ann.at(sample).say('hello')).toMatchObject({ turnIndex: 1 });
    // The next kill has its own command.
    expect(sample.restartLine).toBe(restartLine);
  });

  function turnsOf({ sessionId }: Customer): Promise<Turn[]> {
    return withLedger(file, ({ turns }) => turns.list({ sessionId }));
  }
});

/** @throws when it takes longer */
async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`It took longer than ${limitMs} ms.`)), limitMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
