import { lastValueFrom, toArray } from 'rxjs';
import {
  defineOrchestrator,
  IdempotencyConflictError,
  LaneDrainingError,
  LaneFullError,
  type OrchestratorRef,
  PermanentTurnError,
  reply,
  SessionBusyError,
  ShuttingDownError,
  type TurnContext,
  TurnCancelledError,
  type TurnEvent,
  TurnReentryError,
  type TurnService,
  type TurnStatus,
  TurnWaitTimeoutError,
  type WhenBusy,
  type TurnsOptions,
} from 'nestjs-agent-sessions';
import { bullmqQueue, type BullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { describeBullmqServers, queueOptionsOn } from '../support/bullmq.js';
import {
  aborted,
  type Application,
  gate,
  lasting,
  rejection,
  startApplication,
} from '../support/running-application.js';
import { eventually } from '../support/eventually.js';
import { steadyClock } from '../support/steady-clock.js';
import { serverStore } from '../support/stores.js';

/** One attempt of a handler, in whichever worker. */
interface Attempt {
  readonly worker: number;
  readonly sessionId: string;
  readonly text: string;
  readonly startedAt: number;
  endedAt: number;
}

type Work = (turn: TurnContext, worker: number) => Promise<string | void>;

/** One API that only submits, and workers: each an application with connections of its own. */
interface Deployment {
  readonly api: Application;
  readonly workers: readonly Application[];
  readonly attempts: readonly Attempt[];
  readonly submit: (
    text: string,
    options: { sessionId: string; whenBusy?: WhenBusy },
  ) => ReturnType<TurnService['submit']>;
  readonly execute: (text: string, sessionId: string) => ReturnType<TurnService['execute']>;
  /** One more worker. */
  readonly join: () => Promise<Application>;
  readonly queue: BullmqQueue;
}

describeBullmqServers('workers that BullMQ notifies', (server) => {
  const { create } = lasting(serverStore(server));

  describe.each([1, 3])('%i of them', (count) => {
    async function deploy(
      work: Work,
      turns: TurnsOptions & { readonly concurrency?: number } = {},
    ): Promise<Deployment> {
      const { concurrency, ...rest } = turns;
      const sameQueue = queueOptionsOn(server);
      const connect = create();
      const attempts: Attempt[] = [];
      let clock = 0;
      const desk = (worker: number): OrchestratorRef =>
        defineOrchestrator({
          name: 'desk',
          intents: {
            answer: async (turn) => {
              const { sessionId, input } = turn;
              const attempt: Attempt = {
                worker,
                sessionId,
                text: input.text,
                startedAt: (clock += 1),
                endedAt: Infinity,
              };
              attempts.push(attempt);
              try {
                return reply((await work(turn, worker)) ?? `did ${input.text}`);
              } finally {
                attempt.endedAt = clock += 1;
              }
            },
          },
        });
      const start = (role: 'submit' | 'work', worker: number): Promise<Application> => {
        const queue = bullmqQueue({ ...sameQueue, concurrency });
        return startApplication({
          adapter: connect(),
          role,
          turns: { ...rest, queue },
          orchestrators: [desk(worker)],
        });
      };
      // The first one makes the tables.
      const api = await start('submit', -1);
      const workers = await Promise.all(Array.from({ length: count }, (_, worker) => start('work', worker)));
      return {
        api,
        workers,
        attempts,
        submit: (text, options) => api.turns.submit('desk', text, options),
        execute: (text, sessionId) => api.turns.execute('desk', text, { sessionId, timeoutMs: 20_000 }),
        join: () => start('work', count),
        queue: bullmqQueue(sameQueue),
      };
    }

    it('TRN-02 TRN-03 TRN-08 run each session in order, one turn at a time, though attempts fail', async () => {
      const isWorking = (worker: number): boolean => attempts.some((attempt) => attempt.worker === worker);
      const { api, attempts, execute } = await deploy(
        async ({ input, attempt }) => {
          await new Promise((resolve) => setTimeout(resolve, 2));
          // Two of them do not have room for all sessions, so the third one must come.
          await eventually(() => Array.from({ length: count }, (_, worker) => worker).every(isWorking));
          if (input.text.startsWith('broken')) throw new PermanentTurnError('It never works.');
          if (input.text.startsWith('shaky') && attempt < 3) throw new Error('Not yet.');
        },
        { concurrency: 2, retry: { attempts: 3, backoff: { type: 'fixed', delayMs: 20 } } },
      );
      const sessionIds = await Promise.all(Array.from({ length: 5 }, () => api.session()));
      const kinds = ['well', 'shaky', 'well', 'broken', 'well', 'shaky', 'well', 'well'];

      await Promise.allSettled(
        sessionIds.flatMap((sessionId) => kinds.map((kind, n) => execute(`${kind} ${n}`, sessionId))),
      );

      for (const sessionId of sessionIds) {
        const accepted = await api.turns.list({ sessionId });
        const texts = accepted.map(({ request }) => request.input.text);
        const ran = attempts.filter((attempt) => attempt.sessionId === sessionId);
        expect(ran.map(({ text }) => text)).toEqual(
          texts.flatMap((text) => Array<string>(text.startsWith('shaky') ? 3 : 1).fill(text)),
        );
        for (const [i, { startedAt }] of ran.slice(1).entries()) expect(startedAt).toBeGreaterThan(ran[i].endedAt);
        expect(accepted.map(({ status }) => status)).toEqual(
          texts.map((text): TurnStatus => (text.startsWith('broken') ? 'failed' : 'awaiting-input')),
        );
        const indices = accepted.flatMap(({ turnIndex }) => turnIndex ?? []);
        expect(indices).toEqual(indices.map((_, i) => i));
      }
      // All of them work.
      expect(new Set(attempts.map(({ worker }) => worker)).size).toBe(count);
    });

    it('TRN-04 run as many sessions at once as their concurrency adds up to', async () => {
      const capacity = 2 * count;
      let running = 0;
      let peak = 0;
      const { api, execute } = await deploy(
        async () => {
          running += 1;
          peak = Math.max(peak, running);
          await eventually(() => peak >= capacity);
          // A while longer, for one too many.
          await new Promise((resolve) => setTimeout(resolve, 20));
          running -= 1;
        },
        { concurrency: 2 },
      );
      const sessionIds = await Promise.all(Array.from({ length: 4 * capacity }, () => api.session()));
      await Promise.all(sessionIds.map((sessionId) => execute('hi', sessionId)));
      expect(peak).toBe(capacity);
    });

    it('TRN-04 a session with many queued turns does not hold back the others', async () => {
      const { pass, open: release } = gate();
      const { api, attempts, submit } = await deploy(() => pass(), { concurrency: 1, maxQueuedPerSession: 500 });
      const hot = await api.session();
      await Promise.all(Array.from({ length: 300 }, (_, n) => submit(`hot ${n}`, { sessionId: hot })));
      const cold = await Promise.all(
        Array.from({ length: 10 }, async () => submit('cold', { sessionId: await api.session() })),
      );
      release();
      await Promise.all(cold.map(({ id }) => api.turns.result(id, { timeoutMs: 20_000 })));
      const last = attempts.map(({ text }) => text).lastIndexOf('cold');
      const hotBefore = attempts.slice(0, last).filter(({ text }) => text !== 'cold').length;
      // One visit of the hot lane for each time that the others went by, at most: far from all of it.
      expect(hotBefore).toBeLessThanOrEqual(16 * (cold.length + count));
    });

    it('TRN-05 creates one turn per idempotency key across processes, and runs it once', async () => {
      const { api, workers, attempts } = await deploy(async () => undefined);
      const sessionId = await api.session();
      const say = ({ turns }: Application, text: string): ReturnType<TurnService['execute']> =>
        turns.execute('desk', text, { sessionId, idempotencyKey: 'k', timeoutMs: 20_000 });

      const results = await Promise.all([api, ...workers, api, ...workers].map((app) => say(app, 'pay')));

      expect(new Set(results.map(({ id }) => id)).size).toBe(1);
      expect(attempts).toHaveLength(1);
      expect(await say(api, 'pay')).toEqual(results[0]);
      await rejection(say(workers[0], 'pay twice'), IdempotencyConflictError);
    });

    it.each<[WhenBusy, string[], string[], Record<string, TurnStatus>]>([
      ['enqueue', ['runs', 'queued', 'new'], ['runs', 'queued', 'new'], {}],
      ['interrupt', ['runs', 'queued', 'new'], ['runs', 'queued', 'new'], { runs: 'cancelled' }],
      ['rollback', ['runs', 'queued', 'new'], ['queued', 'new'], { runs: 'cancelled' }],
      ['latest', ['runs', 'new'], ['runs', 'new'], { queued: 'superseded' }],
      ['replace', ['runs', 'new'], ['runs', 'new'], { runs: 'cancelled', queued: 'superseded' }],
    ])('TRN-06 %s, decided while another process runs the turn', async (whenBusy, ran, said, ended) => {
      const { pass, open: release } = gate();
      const { api, attempts, submit } = await deploy(({ signal, input }) =>
        input.text === 'runs' ? pass(signal) : Promise.resolve(),
      );
      const sessionId = await api.session();
      await submit('runs', { sessionId });
      await eventually(() => attempts.length === 1);
      await submit('queued', { sessionId });
      const { id } = await submit('new', { sessionId, whenBusy });
      if (!ended.runs) release();

      await api.turns.result(id, { timeoutMs: 20_000 });

      const turns = await api.turns.list({ sessionId });
      const statuses = Object.fromEntries(turns.map(({ request, status }) => [request.input.text, status]));
      expect(statuses).toEqual({ runs: 'awaiting-input', queued: 'awaiting-input', new: 'awaiting-input', ...ended });
      expect(attempts.map(({ text }) => text)).toEqual(ran);
      const messages = await api.adapter.conversations.page(sessionId);
      expect(messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual(said);
    });

    it('TRN-06 reject says that the holder is alive, and since when', async () => {
      const { pass, open: release } = gate();
      const { api, attempts, submit } = await deploy(() => pass());
      const sessionId = await api.session();
      const { id } = await submit('runs', { sessionId });
      await eventually(() => attempts.length === 1);
      const error = await rejection(submit('new', { sessionId, whenBusy: 'reject' }), SessionBusyError);
      const startedAt = (await api.turns.get(id))?.startedAt;
      expect(error).toMatchObject({ sessionId, turnId: id, holderAlive: true, since: startedAt });
      release();
      await api.turns.result(id);
    });

    it('TRN-07 a full lane refuses, however many processes fill it at once', async () => {
      const { pass, open: release } = gate();
      const { api, workers, attempts, submit } = await deploy(() => pass(), { maxQueuedPerSession: 3 });
      const sessionId = await api.session();
      await submit('runs', { sessionId });
      await eventually(() => attempts.length === 1);

      const outcomes = await Promise.allSettled(
        [api, ...workers, api, ...workers, api, api].map(({ turns }) => turns.submit('desk', 'more', { sessionId })),
      );

      const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
      expect(outcomes.length - refused.length).toBe(3);
      for (const error of refused) expect(error).toBeInstanceOf(LaneFullError);
      release();
      await eventually(async () => (await api.turns.list({ sessionId, status: 'awaiting-input' })).length === 4);
    });

    it('TRN-09 a cancel reaches the handler in its worker within a second', async () => {
      let stoppedAt = Infinity;
      const { api, attempts, execute } = await deploy(({ signal }) =>
        aborted(signal).finally(() => (stoppedAt = steadyClock.now())),
      );
      const sessionId = await api.session();
      const cancelled = rejection(execute('runs', sessionId), TurnCancelledError);
      await eventually(() => attempts.length === 1);
      const [{ id }] = await api.turns.list({ sessionId });
      const askedAt = steadyClock.now();
      await api.turns.cancel(id);
      await cancelled;
      expect(stoppedAt - askedAt).toBeLessThan(1000);
    });

    it('TRN-10 a caller that stops waiting leaves the turn running, and can ask later', async () => {
      const { pass, open: release } = gate();
      const { api, attempts } = await deploy(() => pass());
      const sessionId = await api.session();
      const asked = api.turns.execute('desk', 'slow', { sessionId, timeoutMs: 200 });
      const { turnId = '' } = await rejection(asked, TurnWaitTimeoutError);
      await eventually(() => attempts.length === 1);
      expect(await api.turns.get(turnId)).toMatchObject({ status: 'running' });
      release();
      expect(await api.turns.result(turnId)).toMatchObject({ reply: 'did slow' });
    });

    it('TRN-12 a handler that waits for its own lane gets an error', async () => {
      const { api, workers, execute } = await deploy(async ({ sessionId, input }, worker) => {
        if (input.text !== 'outer') return;
        await rejection(workers[worker].turns.execute('desk', 'inner', { sessionId }), TurnReentryError);
      });
      expect(await execute('outer', await api.session())).toMatchObject({ reply: 'did outer' });
    });

    it('TRN-13 a turn that waits holds no worker; the signal is heard by whichever has time', async () => {
      const { api, attempts, submit, execute } = await deploy(
        async (turn) => (turn.input.text === 'ask' ? JSON.stringify(await turn.waitFor('approval')) : undefined),
        { concurrency: 1 },
      );
      // One for each worker, and nobody is held.
      const asked = await Promise.all(
        Array.from({ length: count }, async () => submit('ask', { sessionId: await api.session() })),
      );
      for (const { id } of asked) await eventually(async () => (await api.turns.get(id))?.status === 'waiting');
      expect(await execute('meanwhile', await api.session())).toMatchObject({ reply: 'did meanwhile' });
      const behind = await submit('behind', { sessionId: asked[0].sessionId });

      for (const { id } of asked) await api.turns.signal(id, 'approval', { granted: true });

      for (const { id } of asked) expect(await api.turns.result(id)).toMatchObject({ reply: '{"granted":true}' });
      expect(await api.turns.result(behind.id)).toMatchObject({ reply: 'did behind' });
      expect(attempts.filter(({ text }) => text === 'ask')).toHaveLength(2 * count);
    });

    it('TRN-14 a worker that stops hands its turn and its lane to another one, uncounted', async () => {
      const { pass, open: release } = gate();
      const { api, workers, attempts, submit, join } = await deploy(({ signal }) => pass(signal), {
        leaseMs: 3_600_000,
      });
      const sessionId = await api.session();
      const first = await submit('first', { sessionId });
      const second = await submit('second', { sessionId });
      const { worker } = await eventually(() => attempts[0]);
      const heard = rejection(workers[worker].turns.result(second.id), ShuttingDownError);

      await workers[worker].close();
      await heard;
      if (count === 1) await join();
      release();

      expect(await api.turns.result(second.id, { timeoutMs: 20_000 })).toMatchObject({ turnIndex: 1 });
      expect(await api.turns.get(first.id)).toMatchObject({ status: 'awaiting-input', failures: 0, turnIndex: 0 });
      expect(attempts.slice(1).every((attempt) => attempt.worker !== worker)).toBe(true);
    });

    it('TRN-01 TRN-10 status is the same in every process, and settled turns stay as they are', async () => {
      const { api, workers, submit } = await deploy(async ({ input }) => {
        if (input.text === 'broken') throw new PermanentTurnError('It never works.');
      });
      const sessionId = await api.session();
      const ids = [await submit('well', { sessionId }), await submit('broken', { sessionId })].map(({ id }) => id);
      await eventually(async () => (await api.turns.get(ids[1]))?.settledAt);
      const settled = await api.turns.list({ sessionId });
      expect(settled.map(({ status }) => status)).toEqual(['awaiting-input', 'failed']);
      for (const { turns } of workers) {
        for (const id of ids) await turns.cancel(id);
        expect(await turns.list({ sessionId })).toEqual(settled);
      }
    });

    it('TRN-11 a lane, or all of them, is paused, drained and cleared for every worker, and shows who holds it', async () => {
      const { pass, open: release } = gate();
      const { api, attempts, submit } = await deploy(({ input }) =>
        input.text === 'runs' ? pass() : Promise.resolve(),
      );
      const { lanes } = api.turns;
      const [held, other] = [await api.session(), await api.session()];
      const runs = await submit('runs', { sessionId: held });
      await eventually(() => attempts.length === 1);
      const { head } = await lanes.get(held);
      expect(head).toMatchObject({ id: runs.id, status: 'running', failures: 0, worker: expect.any(String) as string });

      await lanes.pause({ sessionId: held });
      const behind = await submit('behind', { sessionId: held });
      release();
      await api.turns.result(runs.id, { timeoutMs: 20_000 });
      // The others continue meanwhile.
      const free = await submit('free', { sessionId: other });
      await api.turns.result(free.id, { timeoutMs: 20_000 });
      expect(await api.turns.get(behind.id)).toMatchObject({ status: 'queued' });
      await lanes.resume({ sessionId: held });
      await api.turns.result(behind.id, { timeoutMs: 20_000 });

      await lanes.pause({ all: true });
      const kept = await submit('kept', { sessionId: held });
      const cleared = await submit('cleared', { sessionId: other });
      expect(await lanes.counts()).toMatchObject({ mode: 'paused', lanes: 2, queued: 2, running: 0, waiting: 0 });
      expect(await lanes.clear({ sessionId: other })).toBe(1);
      await rejection(api.turns.result(cleared.id), TurnCancelledError);
      expect(attempts.map(({ text }) => text)).not.toContain('kept');
      expect(await lanes.drain({ all: true }, { timeoutMs: 20_000 })).toBe(true);
      expect(await api.turns.get(kept.id)).toMatchObject({ status: 'awaiting-input' });
      await rejection(submit('late', { sessionId: held }), LaneDrainingError);
      await lanes.resume({ all: true });
      const again = await submit('again', { sessionId: held });
      expect(await api.turns.result(again.id, { timeoutMs: 20_000 })).toMatchObject({ reply: 'did again' });
    });

    it('TRN-30 TRN-31 TRN-32 another process streams what a worker emits, over its end, and resumes exactly', async () => {
      const { pass, open: release } = gate();
      const { api, workers, attempts, submit, join } = await deploy(async (turn) => {
        void turn.emit({ type: 'delta', data: 'one' });
        void turn.emit({ type: 'delta', data: 'two' });
        await pass(turn.signal);
        void turn.emit({ type: 'delta', data: 'three' });
      });
      const { id } = await submit('go', { sessionId: await api.session() });
      const seen: TurnEvent[] = [];
      const reading = readAll(api.turns.readEvents(id), seen);
      const { worker } = await eventually(() => attempts[0]);
      await eventually(() => seen.length === 2);

      await workers[worker].close();
      if (count === 1) await join();
      await eventually(() => seen.length === 5);
      release();
      await reading;

      expect(seen.map(({ offset, type, data }) => [offset, type, type === 'settled' ? null : data])).toEqual([
        [1, 'delta', 'one'],
        [2, 'delta', 'two'],
        [3, 'attempt', { attempt: 1 }],
        [4, 'delta', 'one'],
        [5, 'delta', 'two'],
        [6, 'delta', 'three'],
        [7, 'settled', null],
      ]);
      for (let after = 0; after <= seen.length; after += 1) {
        const rest: TurnEvent[] = [];
        await readAll(api.turns.readEvents(id, { after }), rest);
        expect(rest).toEqual(seen.slice(after));
      }
      const messages = await lastValueFrom((await api.turns.events(id, { after: '2' })).pipe(toArray()));
      expect(messages.map((message) => message.id)).toEqual(['3', '4', '5', '6', '7']);
    });

    it('TRN-33 a slow reader in another process gets every event, and does not delay others', async () => {
      const { api, submit } = await deploy(async (turn) => {
        for (let n = 1; n <= 600; n += 1) await turn.emit({ type: 'delta', data: n });
      });
      const { id } = await submit('go', { sessionId: await api.session() });
      const slow = api.turns.readEvents(id)[Symbol.asyncIterator]();
      expect(await slow.next()).toMatchObject({ value: { offset: 1 } });

      await api.turns.result(id, { timeoutMs: 20_000 });

      const rest: TurnEvent[] = [];
      await readAll({ [Symbol.asyncIterator]: () => slow }, rest);
      expect(rest.map(({ offset }) => offset)).toEqual(Array.from({ length: 600 }, (_, i) => i + 2));
      expect(rest.at(-1)).toMatchObject({ type: 'settled' });
    });

    it('TRN-21 leaves nothing of idle lanes in the queue', async () => {
      const { api, execute, queue } = await deploy(async () => undefined);
      const sessionIds = await Promise.all(Array.from({ length: 10 }, () => api.session()));
      await Promise.all(sessionIds.flatMap((sessionId) => [execute('one', sessionId), execute('two', sessionId)]));
      const jobs = await queue.queue;
      await eventually(async () => Object.values(await jobs.getJobCounts()).every((jobCount) => jobCount === 0));
      await queue.close();
    });
  });
});

async function readAll(events: AsyncIterable<TurnEvent>, into: TurnEvent[]): Promise<void> {
  for await (const event of events) into.push(event);
}
