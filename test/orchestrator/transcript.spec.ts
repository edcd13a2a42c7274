import fc from 'fast-check';
import {
  defineOrchestrator,
  InvalidInputError,
  NothingToUndoError,
  type OrchestratorHandle,
  reply,
  type SessionsAdapter,
  SessionStateService,
  type SubmitOptions,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { type ConversationLog } from 'nestjs-agent-sessions/adapter';
import { ConversationHeads } from '../../lib/conversation/conversation-heads.js';
import { Transcript } from '../../lib/orchestrator/transcript.js';
import { type TranscriptTurn } from '../../lib/orchestrator/transcript-turn.js';
import { eventually } from '../support/eventually.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import {
  aborted,
  type Application,
  type ApplicationOptions,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';

/** A conversation with the orchestrator `desk`. The orchestrator `aside` is hidden. */
interface Talk {
  readonly app: Application;
  readonly sessionId: string;
  readonly desk: OrchestratorHandle;
  /** Submits a turn and waits until it has settled. @returns its id */
  readonly say: (text: string, options?: Partial<SubmitOptions>, orchestrator?: string) => Promise<string>;
  /** Submits a turn that does not end, and waits until it runs. */
  readonly hang: (options?: Partial<SubmitOptions>) => Promise<string>;
  readonly submit: (text: string, options?: Partial<SubmitOptions>) => Promise<string>;
  readonly stop: (turnId: string, keep?: string) => Promise<void>;
  /** Runs a turn that ends in one of four ways. @returns its id */
  readonly take: (kind: Kind, options: Partial<SubmitOptions>) => Promise<string>;
  /** Returns the history of the latest turn. */
  readonly heard: () => readonly unknown[];
  readonly undo: () => Promise<unknown>;
  /** Returns the whole transcript, read in pages. */
  readonly pages: (limit?: number) => Promise<TranscriptTurn[][]>;
  /** Returns the content of the transcript, which is the same with pages of every size. */
  readonly shown: () => Promise<unknown[]>;
}

const FAST = { retry: { attempts: 1, backoff: { type: 'fixed', delayMs: 1 } } } as const;

describe.each(LIVE_STORES)('a transcript over $name', ({ open }) => {
  it('AIS-07 shows the messages of turns, with their turns', async () => {
    const { say, pages } = await start(open());
    const ids = [await say('a'), await say('end')];
    expect(await pages()).toEqual([
      [
        {
          id: ids[0],
          turn: turnIn('awaiting-input', ids[0]),
          messages: [said('user', 'a'), said('assistant', 'to a')],
        },
        {
          id: ids[1],
          turn: turnIn('completed', ids[1]),
          messages: [said('user', 'end'), said('assistant', 'to end')],
        },
      ],
    ]);
  });

  it('AIS-07 is empty for an unknown session and for an empty one', async () => {
    const { app, pages } = await start(open());
    expect(await pages()).toEqual([[]]);
    expect(await transcriptOf(app.adapter).page({ sessionId: 'unknown', orchestrators: ['desk'] })).toEqual({
      turns: [],
    });
  });

  it('AIS-07 leaves out turns that were undone, one or several', async () => {
    const { say, undo, shown } = await start(open());
    for (const text of ['a', 'b', 'c']) await say(text);
    await undo();
    expect(await shown()).toEqual(['a', 'to a', 'b', 'to b']);
    await undo();
    await say('d');
    expect(await shown()).toEqual(['a', 'to a', 'd', 'to d']);
    await undo();
    await undo();
    expect(await shown()).toEqual([]);
    await rejection(undo(), NothingToUndoError);
    expect(await shown()).toEqual([]);
  });

  it('AIS-07 leaves out turns that failed after a turn that was undone', async () => {
    const { say, undo, shown } = await start(open());
    for (const text of ['fail a', 'b', 'fail c']) await say(text);
    await undo();
    expect(await shown()).toEqual(['fail a']);
    await say('fail d');
    expect(await shown()).toEqual(['fail a', 'fail d']);
  });

  it('AIS-07 leaves out turns that were replaced, also those that failed in between', async () => {
    const { say, shown } = await start(open());
    await say('a');
    const b = await say('b');
    await say('fail c');
    await say('B', { replaces: b });
    expect(await shown()).toEqual(['a', 'to a', 'B', 'to B']);
  });

  it('AIS-07 shows a replacement at once, and the replaced turn again if the replacement comes to nothing', async () => {
    const { say, hang, stop, submit, shown, app } = await start(open());
    await say('a');
    const b = await say('b');
    const hanging = await hang({ replaces: b });
    expect(await shown()).toEqual(['a', 'to a', 'hang']);
    const queued = await submit('B', { replaces: b });
    expect(await shown()).toEqual(['a', 'to a', 'B']);
    await app.turns.cancel(queued);
    expect(await shown()).toEqual(['a', 'to a', 'hang']);
    await stop(hanging);
    expect(await shown()).toEqual(['a', 'to a', 'b', 'to b']);
    await say('fail', { replaces: b });
    expect(await shown()).toEqual(['a', 'to a', 'b', 'to b']);
  });

  it('AIS-07 shows a stopped replacement with the kept messages', async () => {
    const { say, hang, stop, shown } = await start(open());
    await say('a');
    const b = await say('b');
    await stop(await hang({ replaces: b }), 'half');
    await say('c');
    expect(await shown()).toEqual(['a', 'to a', 'hang', 'half', 'c', 'to c']);
  });

  it('AIS-07 leaves out replacements that were replaced, over pages', async () => {
    const { say, shown } = await start(open());
    await say('a');
    const b = await say('b');
    for (const text of ['c', 'd', 'e']) await say(text);
    const second = await say('B', { replaces: b });
    await say('f');
    await say('BB', { replaces: second });
    await say('BBB', { replaces: b });
    expect(await shown()).toEqual(['a', 'to a', 'BBB', 'to BBB']);
  });

  it('AIS-07 shows the input of turns that failed, were cancelled or superseded, or are open', async () => {
    const { say, hang, stop, submit, shown, app } = await start(open());
    await say('fail a');
    await say('b');
    await stop(await hang());
    const waiting = await submit('wait');
    await eventually(async () => (await app.turns.get(waiting))?.status === 'waiting');
    expect(await shown()).toEqual(['fail a', 'b', 'to b', 'hang', 'wait']);
    await app.turns.signal(waiting, 'go');
    await app.turns.result(waiting);
    await hang();
    await submit('c');
    const last = await submit('d', { whenBusy: 'latest' });
    const open_ = ['hang', 'c', 'd'];
    expect(await shown()).toEqual(['fail a', 'b', 'to b', 'hang', 'wait', 'to wait', ...open_]);
    await app.turns.cancel(last);
    expect(await shown()).toEqual(['fail a', 'b', 'to b', 'hang', 'wait', 'to wait', ...open_]);
  });

  it('AIS-07 shows the parts and metadata of an input', async () => {
    const { app, sessionId, pages } = await start(open());
    const content = [{ type: 'image', url: 'x' }];
    const { id } = await app.turns.submit('desk', { text: 'fail', content, metadata: { k: 1 } }, { sessionId });
    await rejection(app.turns.result(id), TurnFailedError);
    const message = { id: `${id}.0`, role: 'user', content, metadata: { k: 1 }, orchestrator: 'desk', turnId: id };
    expect(await pages()).toEqual([[{ id, turn: turnIn('failed', id), messages: [message] }]]);
  });

  it('AIS-07 shows messages that no turn wrote where they were written', async () => {
    const { app, say, sessionId, shown, hang, stop } = await start(open());
    await append(app.adapter.conversations, sessionId, ['seed 1', 'seed 2']);
    await pause();
    await say('fail a');
    await say('b');
    await pause();
    await append(app.adapter.conversations, sessionId, ['note 1', 'note 2']);
    await pause();
    await say('fail c');
    await stop(await hang());
    await say('d');
    const [notes, seeds] = [
      ['note 1', 'note 2'],
      ['seed 1', 'seed 2'],
    ];
    expect(await shown()).toEqual([...seeds, 'fail a', 'b', 'to b', ...notes, 'fail c', 'hang', 'd', 'to d']);
  });

  it('AIS-07 shows many messages that no turn wrote in pages', async () => {
    const { app, say, sessionId, pages, shown } = await start(open());
    const seeds = Array.from({ length: 30 }, (_, n) => `seed ${n}`);
    await append(app.adapter.conversations, sessionId, seeds);
    await pause();
    await say('fail a');
    await say('fail b');
    expect(await shown()).toEqual([...seeds, 'fail a', 'fail b']);
    expect((await pages(10)).map((page) => page.length)).toEqual([10, 10, 10, 2]);
  });

  it('AIS-07 shows the log, though a turn had a history of its caller', async () => {
    const { say, shown } = await start(open());
    await say('a', { history: [{ role: 'user', content: 'from elsewhere' }] });
    expect(await shown()).toEqual(['a', 'to a']);
  });

  it('AIS-07 shows a forked conversation, and hides the command', async () => {
    const { app, desk, say, sessionId, undo, shown } = await start(open());
    for (const text of ['a', 'b', 'c']) await say(text);
    await undo();
    const { id } = await desk.fork(sessionId);
    await say('d', { sessionId: id });
    expect(await textsIn(app, id)).toEqual(['a', 'to a', 'b', 'to b', 'd', 'to d']);
    expect(await shown()).toEqual(['a', 'to a', 'b', 'to b']);
  });

  it('AIS-07 shows a compacted conversation in full, without its summaries', async () => {
    const { desk, say, sessionId, shown } = await start(open());
    for (const text of ['a', 'b', 'c']) await say(text);
    await desk.command('compact', { sessionId });
    await say('d');
    expect(await shown()).toEqual(['a', 'to a', 'b', 'to b', 'c', 'to c', 'd', 'to d']);
  });

  it('AIS-07 shows nothing from before a reset of the conversation', async () => {
    const { app, desk, say, hang, stop, sessionId, submit, shown } = await start(open());
    await say('a');
    await say('fail b');
    await stop(await hang(), 'half');
    const running = await hang();
    const queued = await submit('c');
    await pause();
    await app.app.get(SessionStateService, { strict: false }).reset({ sessionId, stores: ['conversation'] });
    await pause();
    expect(await shown()).toEqual(['c']);
    await stop(running, 'half');
    await app.turns.result(queued);
    await say('fail d');
    await say('e');
    expect(await shown()).toEqual(['c', 'to c', 'fail d', 'e', 'to e']);
    await desk.undo(sessionId);
    expect(await shown()).toEqual(['c', 'to c', 'fail d']);
  });

  it('AIS-07 shows the messages of purged turns, without a turn', async () => {
    const { app, say, pages, shown } = await start(open());
    const ids = [await say('a'), await say('fail b'), await say('c')];
    await say('C', { replaces: ids[2] });
    await pause();
    await app.adapter.turns.purgeSettled(0, 100);
    await say('d');
    await say('fail e');
    expect(await shown()).toEqual(['a', 'to a', 'C', 'to C', 'd', 'to d', 'fail e']);
    const [[first]] = await pages();
    expect(first).toMatchObject({ id: ids[0] });
    expect(first).not.toHaveProperty('turn');
  });

  it('AIS-07 shows turns before a replaced turn that was purged', async () => {
    const { app, say, hang, stop, submit, shown } = await start(open());
    // Cancelled in the queue, so that it settles before the turns in front of it.
    const running = await hang();
    const queued = await submit('b');
    await app.turns.cancel(queued);
    await pause();
    await stop(running);
    await say('B', { replaces: queued });
    expect(await shown()).toEqual(['hang', 'B', 'to B']);
    expect(await app.adapter.turns.purgeSettled(0, 1)).toBe(1);
    expect(await app.turns.get(queued)).toBeNull();
    expect(await shown()).toEqual(['hang', 'B', 'to B']);
  });

  it('AIS-07 leaves out the turns of other orchestrators', async () => {
    const { app, say, sessionId, undo, shown } = await start(open());
    await say('a');
    const hidden = await say('hidden', {}, 'aside');
    await say('fail hidden', {}, 'aside');
    await say('b');
    await say('hidden again', { replaces: hidden }, 'aside');
    expect(await shown()).toEqual(['a', 'to a', 'b', 'to b']);
    expect(await textsIn(app, sessionId, ['aside'])).toEqual(['hidden again', 'to hidden again']);
    expect(await textsIn(app, sessionId, ['desk', 'aside'])).toEqual([
      ...['a', 'to a', 'b', 'to b', 'hidden again', 'to hidden again'],
    ]);
    await undo();
    expect(await shown()).toEqual(['a', 'to a']);
    expect(await textsIn(app, sessionId, [])).toEqual([]);
  });

  it('AIS-07 hides turns that are not logged', async () => {
    const unlogged = await start(open(), { state: { modules: [] } });
    for (const text of ['a', 'fail b']) await unlogged.say(text);
    expect(await unlogged.shown()).toEqual([]);
  });

  it('AIS-07 refuses a changed cursor', async () => {
    const { app, sessionId } = await start(open());
    const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const wrong = ['', 'x', encoded({}), encoded([]), encoded([1]), encoded([-1, 1, {}]), encoded([1, 1.5, {}])];
    wrong.push(encoded([1, null, {}]), encoded([1, 1, []]), encoded([1, 1, { desk: 'a' }]), encoded(null));
    for (const before of wrong) {
      const query = { sessionId, orchestrators: ['desk'], before };
      await rejection(transcriptOf(app.adapter).page(query), InvalidInputError);
    }
  });

  it('AIS-07 shows a page again, and the pages before it, though turns follow', async () => {
    const { app, say, sessionId } = await start(open());
    for (const text of ['a', 'b', 'c']) await say(text);
    const transcript = transcriptOf(app.adapter);
    const query = { sessionId, orchestrators: ['desk'], limit: 1 };
    const { before } = await transcript.page(query);
    const second = await transcript.page({ ...query, ...(before === undefined ? {} : { before }) });
    await say('d');
    expect(await transcript.page({ ...query, ...(before === undefined ? {} : { before }) })).toEqual(second);
  });

  it('AIS-07 reads a limited part of a conversation with many hidden turns, and goes on with the next page', async () => {
    const { app, say, sessionId } = await start(open());
    await say('a');
    for (let n = 0; n < 30; n += 1) await say(`${n}`, {}, 'aside');
    const calls: string[] = [];
    const transcript = transcriptOf(recordingAdapter(app.adapter, calls));
    const query = { sessionId, orchestrators: ['desk'], limit: 2 };
    const latest = await transcript.page(query);
    expect(latest).toEqual({ turns: [], before: expect.any(String) as string });
    expect(calls.length).toBeLessThanOrEqual(11 * 7);
    const earlier = await transcript.page({ ...query, before: latest.before! });
    expect([textsOf(earlier.turns), earlier.before]).toEqual([['a', 'to a'], undefined]);
  });

  it('AIS-07 shows 1,000 turns once each, with few reads of the store for a page', async () => {
    const { app, say, sessionId } = await start(open());
    const { adapter } = app;
    const texts = Array.from({ length: 1000 }, (_, n) => (n % 10 === 9 ? `fail ${n}` : `${n}`));
    for (const text of texts) await say(text);
    const calls: string[] = [];
    const transcript = transcriptOf(recordingAdapter(adapter, calls));
    const seen: unknown[][] = [];
    for (let before: string | undefined, more = true; more;) {
      calls.length = 0;
      const page = await transcript.page({ sessionId, orchestrators: ['desk'], ...(before ? { before } : {}) });
      expect(calls.length).toBeLessThanOrEqual(7);
      seen.unshift(textsOf(page.turns));
      ({ before } = page);
      more = before !== undefined;
    }
    expect(seen).toHaveLength(20);
    expect(seen.flat()).toEqual(texts.flatMap((text) => (text.startsWith('fail') ? [text] : [text, `to ${text}`])));
  }, 120_000);
});

describe('the transcript after any sequence of turns', () => {
  const back = fc.nat(4);
  const operation = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        type: fc.constantFrom('say' as const, 'fail' as const, 'cancel' as const, 'keep' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('undo' as const) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        type: fc.constantFrom('say' as const, 'fail' as const, 'cancel' as const, 'keep' as const),
        back,
      }),
    },
  );

  it.each(LIVE_STORES.slice(0, 1))(
    'AIS-07 is what a list predicts, over $name',
    async ({ open }) => {
      const talk = await start(open());
      await fc.assert(
        fc.asyncProperty(
          fc.array(operation, { minLength: 1, maxLength: 14 }),
          fc.integer({ min: 1, max: 6 }),
          async (operations, limit) => {
            const sessionId = await talk.app.session();
            const model = new Model();
            for (const each of operations) {
              if (each.type === 'undo') {
                if (model.undo()) await talk.desk.undo(sessionId);
                else await rejection(talk.desk.undo(sessionId), NothingToUndoError);
                continue;
              }
              const replaced = 'back' in each ? model.ids.at(-1 - each.back) : undefined;
              const id = await talk.take(each.type, {
                sessionId,
                ...(replaced === undefined ? {} : { replaces: replaced }),
              });
              model.take(each.type, id, replaced);
            }
            const pages = await pagesOf(talk.app, sessionId, limit, ['desk']);
            expect(textsOf(pages.toReversed().flat())).toEqual(model.shown);
            const open_ = await talk.hang({ sessionId });
            expect(await textsIn(talk.app, sessionId)).toEqual([...model.shown, 'hang']);
            await talk.stop(open_);
            await talk.say('fail', { sessionId });
            expect(talk.heard()).toEqual(model.heard);
          },
        ),
        { numRuns: 150 },
      );
    },
    120_000,
  );
});

type Kind = 'say' | 'fail' | 'cancel' | 'keep';

/** Predicts a transcript. */
class Model {
  readonly ids: string[] = [];
  private readonly texts = new Map<string, readonly string[]>();
  /** The ids of the turns that the state contains. */
  private counted: readonly string[] = [];

  get shown(): readonly string[] {
    return this.ids.flatMap((id) => this.texts.get(id) ?? []);
  }

  /** The messages that the next turn receives. */
  get heard(): readonly string[] {
    const logged = [...this.texts.values()].filter((texts) => texts.length > 1);
    return logged.flat();
  }

  take(kind: Kind, id: string, replaced?: string): void {
    const hasEffect = kind === 'say' || kind === 'keep';
    if (replaced !== undefined && hasEffect) this.takeBack(replaced);
    this.ids.push(id);
    if (kind === 'say' || (kind === 'keep' && replaced !== undefined)) this.counted = [...this.counted, id];
    if (replaced === undefined || hasEffect) this.texts.set(id, TEXTS[kind]);
  }

  /** @returns false if there is nothing to undo */
  undo(): boolean {
    const last = this.counted.at(-1);
    if (last === undefined) return false;
    this.takeBack(last);
    return true;
  }

  private takeBack(first: string): void {
    const taken = this.ids.slice(this.ids.indexOf(first));
    for (const id of taken) this.texts.delete(id);
    this.counted = this.counted.filter((id) => !taken.includes(id));
  }
}

const TEXTS: Readonly<Record<Kind, readonly string[]>> = {
  say: ['say', 'to say'],
  fail: ['fail'],
  cancel: ['hang'],
  keep: ['hang', 'half'],
};

function said(role: string, content: string): object {
  return expect.objectContaining({ role, content }) as object;
}

function turnIn(status: string, id: string): object {
  return expect.objectContaining({ id, status }) as object;
}

function textsOf(turns: readonly TranscriptTurn[]): unknown[] {
  return turns.flatMap(({ messages }) => messages.map(({ content }) => content));
}

function transcriptOf(adapter: SessionsAdapter): Transcript {
  return new Transcript(adapter, new ConversationHeads(adapter.state));
}

async function pagesOf(
  { adapter }: Application,
  sessionId: string,
  limit: number,
  orchestrators: readonly string[],
): Promise<TranscriptTurn[][]> {
  const transcript = transcriptOf(adapter);
  const pages: TranscriptTurn[][] = [];
  for (let before: string | undefined, more = true; more;) {
    const page = await transcript.page({ sessionId, orchestrators, limit, ...(before ? { before } : {}) });
    pages.push([...page.turns]);
    ({ before } = page);
    more = before !== undefined;
  }
  return pages;
}

/** Returns the content of the transcript, which is the same with pages of every size. */
async function textsIn(app: Application, sessionId: string, orchestrators = ['desk']): Promise<unknown[]> {
  const whole = (await pagesOf(app, sessionId, 1000, orchestrators)).flat();
  for (const limit of [1, 2, 3, 7]) {
    const pages = await pagesOf(app, sessionId, limit, orchestrators);
    expect(pages.toReversed().flat()).toEqual(whole);
    for (const page of pages) expect(page.length).toBeLessThanOrEqual(limit);
  }
  return textsOf(whole);
}

function append(log: ConversationLog, sessionId: string, texts: readonly string[]): Promise<unknown> {
  return log.append(
    sessionId,
    texts.map((content) => ({ id: content, role: 'assistant', content })),
  );
}

/** Waits until the clock of the store has another millisecond. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}

async function start(adapter: SessionsAdapter, options: Pick<ApplicationOptions, 'state'> = {}): Promise<Talk> {
  let heard: readonly unknown[] = [];
  const answer = async (turn: TurnContext) => {
    heard = turn.history.map(({ content }) => content);
    const { text } = turn.input;
    if (text === 'hang') return aborted(turn.signal);
    if (text === 'wait') await turn.waitFor('go');
    if (text.startsWith('fail')) throw new Error('no');
    return reply(`to ${text}`, text === 'end' ? { status: 'completed' } : {});
  };
  const definitions = ['desk', 'aside'].map((name) =>
    defineOrchestrator({
      name,
      keepCheckpoints: 'all',
      historyWindow: options.state ? 0 : 100,
      ...(options.state ? {} : { compaction: { keep: 2, summarize: () => 'summary' } }),
      intents: { answer },
    }),
  );
  const [desk] = definitions;
  const app = await startApplication({ adapter, orchestrators: definitions, turns: FAST, ...options });
  const sessionId = await app.session();
  const submit: Talk['submit'] = async (text, more = {}) =>
    (await app.turns.submit('desk', text, { sessionId, ...more })).id;
  const say: Talk['say'] = async (text, more = {}, orchestrator = 'desk') => {
    const { id } = await app.turns.submit(orchestrator, text, { sessionId, ...more });
    await app.turns.result(id).catch(() => undefined);
    return id;
  };
  const hang: Talk['hang'] = async (more = {}) => {
    const id = await submit('hang', more);
    await eventually(async () => (await app.turns.get(id))?.status === 'running');
    return id;
  };
  const stop: Talk['stop'] = async (turnId, keep) => {
    await app.turns.cancel(turnId, keep === undefined ? {} : { keep: [{ role: 'assistant', content: keep }] });
    await app.turns.result(turnId).catch(() => undefined);
  };
  return {
    app,
    sessionId,
    submit,
    say,
    hang,
    stop,
    take: async (kind, more) => {
      if (kind === 'say' || kind === 'fail') return say(kind, more);
      const id = await hang(more);
      await stop(id, kind === 'keep' ? 'half' : undefined);
      return id;
    },
    desk: app.handle(desk),
    heard: () => heard,
    undo: () => app.handle(desk).undo(sessionId),
    pages: (limit = 1000) => pagesOf(app, sessionId, limit, ['desk']),
    shown: () => textsIn(app, sessionId),
  };
}
