import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { type DataSource } from 'typeorm';
import { Deadline } from '../../lib/common/deadline.js';
import { PostgresDatabase } from '../../lib/store/postgres/postgres-database.js';
import { asStoreError } from '../../lib/store/postgres/postgres-errors.js';
import { PostgresLaneCalls } from '../../lib/store/postgres/postgres-lane-calls.js';
import { placeOf } from '../../lib/store/sql/sql-place.js';
import { unavailable } from '../support/faults.js';

const LONG_MS = 600_000;
const LOCK_TIMEOUT = answerOf('55P03');
const request = new AsyncLocalStorage<string>();

describe('statements of calls that work in lanes of PostgreSQL', () => {
  let database: DatabaseOfNobody;
  let calls: PostgresLaneCalls;

  beforeEach(() => {
    database = new DatabaseOfNobody();
    calls = new PostgresLaneCalls(database as unknown as PostgresDatabase);
  });

  it('TRN-01 are shared by calls with similar remaining time', async () => {
    database.timeoutMs = LONG_MS / 2;
    begin('old');
    database.timeoutMs = LONG_MS;
    begin('new');
    begin('newest');

    await turnOfTheLoop();
    expect(database.sessions()).toEqual([['old'], ['new', 'newest']]);
  });

  it('TRN-01 exclude calls that waited too long for their lane', async () => {
    begin('a');
    await turnOfTheLoop();
    database.timeoutMs = 5;
    await expect(call('a')).rejects.toMatchObject(unavailable(false));

    database.answerAll();
    await turnOfTheLoop();
    expect(database.sessions()).toEqual([['a']]);
  });

  it('TRN-01 exclude calls that waited too long for other statements', async () => {
    begin('a');
    begin('b');
    await turnOfTheLoop();
    database.timeoutMs = 5;
    await expect(call('c')).rejects.toMatchObject(unavailable(false));

    database.answerAll();
    await turnOfTheLoop();
    expect(database.sessions()).toEqual([['a'], ['b']]);
  });

  it('NST-21 are sent in the trace of the call if they contain only one', async () => {
    request.run('first', () => begin('a'));
    request.run('second', () => begin('b'));
    await turnOfTheLoop();
    request.run('third', () => begin('c'));
    await turnOfTheLoop();
    database.answerAll();
    await turnOfTheLoop();
    expect(database.requests()).toEqual(['first', 'second', 'third']);
  });

  it('NST-21 belong to no trace when several calls share one, and to each trace when sent alone', async () => {
    const ids = ['a', 'b', 'c', 'd'];
    ids.forEach((id) => request.run(id, () => begin(id)));
    await turnOfTheLoop();
    expect(database.requests()).toEqual([undefined, undefined]);

    database.failAll(LOCK_TIMEOUT);
    await turnOfTheLoop();
    expect(database.requests().slice(2)).toEqual(ids);
  });

  it('TRN-02 skip a lane until its call that was sent alone has an answer', async () => {
    ['locked', 'b'].forEach(begin);
    await turnOfTheLoop();
    database.statements[0].fail(LOCK_TIMEOUT);
    await turnOfTheLoop();
    begin('locked');
    begin('c');
    await turnOfTheLoop();
    expect(database.sessions().slice(2)).toEqual([['locked'], ['c']]);

    database.statements[2].answer();
    await turnOfTheLoop();
    expect(database.sessions().slice(4)).toEqual([]);
    database.statements[3].answer();
    await turnOfTheLoop();
    expect(database.sessions().slice(4)).toEqual([['locked']]);
  });

  it.each(['ERROR', 'FEHLER'])(
    'TRN-02 are sent again alone after a rejected value, with severity %s',
    async (severity) => {
      const outcomes = Promise.allSettled(['a', 'b', 'c', 'd'].map(call));
      await turnOfTheLoop();
      database.failAll(answerOf('22P05', severity));
      await turnOfTheLoop();
      database.answerAll();

      expect(await outcomes).toMatchObject(Array(4).fill({ status: 'fulfilled' }));
      expect(database.statements).toHaveLength(6);
    },
  );

  it('TRN-02 keep the order of calls of one lane that are sent alone', async () => {
    const settled: string[] = [];
    ['first', 'second', 'third'].forEach((name) => void call('a').then(() => settled.push(name)));
    await turnOfTheLoop();
    expect(database.sessions()).toEqual([['a', 'a']]);
    database.failAll(LOCK_TIMEOUT);
    for (let sent = 2; sent < 5; sent += 1) {
      await turnOfTheLoop();
      await turnOfTheLoop();
      expect(database.statements).toHaveLength(sent);
      database.answerAll();
    }
    await turnOfTheLoop();
    expect(settled).toEqual(['first', 'second', 'third']);
  });

  it.each([
    ['there is no connection', asStoreError(new Error('connect ECONNREFUSED'), false)],
    ['the server takes no writes', answerOf('25006')],
    ['the disk is full', answerOf('53100')],
  ])('TRN-01 are not sent again per call when %s', async (_, error) => {
    const outcomes = Promise.allSettled(['a', 'b', 'c', 'd'].map(call));
    await turnOfTheLoop();
    database.failAll(error);

    expect(await outcomes).toMatchObject(Array(4).fill({ reason: unavailable(false) }));
    expect(database.statements).toHaveLength(2);
  });

  function call(sessionId: string): Promise<unknown> {
    return calls.call('claim_v1', { session_id: sessionId });
  }

  function begin(sessionId: string): void {
    void call(sessionId);
  }
});

describe('a statement of PostgreSQL', () => {
  const sent: unknown[][] = [];
  const ANSWER = [{ result0: '{"claimed":null}' }];
  let answer: readonly object[] = ANSWER;
  const runner = {
    connect: () => Promise.resolve({ end: () => Promise.resolve() }),
    query: (_: string, values: unknown[]) => {
      sent.push(values);
      return Promise.resolve(answer);
    },
    release: () => Promise.resolve(),
  };
  const place = placeOf({ type: 'postgres' }, 'p_');
  const dataSource = { createQueryRunner: () => runner } as unknown as DataSource;
  const database = new PostgresDatabase(place, () => dataSource, LONG_MS);

  beforeEach(() => {
    sent.length = 0;
    answer = ANSWER;
  });

  it('TRN-01 waits for a lock no longer than its caller waits', async () => {
    expect(await database.callAll([CALL], new Deadline(LONG_MS / 10))).toEqual([{ claimed: null }]);
    const lockTimeoutMs = Number(sent[0][0]);
    expect(lockTimeoutMs).toBeLessThan(LONG_MS / 10);
    expect(lockTimeoutMs).toBeGreaterThan(LONG_MS / 20);
  });

  it('TRN-01 is not sent after its deadline', async () => {
    await expect(database.callAll([CALL], new Deadline(0))).rejects.toMatchObject(unavailable(false));
    expect(sent).toEqual([]);
  });

  it.each([
    ['without rows', []],
    ['without the column', [{ other: '1' }]],
  ])('FIX-66 may have been applied if its answer is %s', async (_, rows) => {
    answer = rows;
    const call = database.callAll([CALL], new Deadline(LONG_MS));
    await expect(call).rejects.toMatchObject({ ...unavailable(true), reason: 'unknown' });
  });

  it('FIX-66 reports a parser of text that the application has replaced', async () => {
    answer = [{ result0: { claimed: null } }];
    const call = database.callAll([CALL], new Deadline(LONG_MS));
    await expect(call).rejects.toMatchObject({ code: 'CONFIGURATION' });
  });
});

const CALL = { operation: 'claim_v1', args: '{}' };

interface Statement {
  readonly sessions: readonly string[];
  readonly request: string | undefined;
  answer(): void;
  fail(error: Error): void;
}

/** Answers when the test tells it to. */
class DatabaseOfNobody {
  timeoutMs = LONG_MS;
  readonly statements: Statement[] = [];

  deadline(): Deadline {
    return new Deadline(this.timeoutMs);
  }

  callAll(calls: readonly { sessionId: string }[]): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      this.statements.push({
        sessions: calls.map(({ sessionId }) => sessionId),
        request: request.getStore(),
        answer: () => resolve(calls.map(() => null)),
        fail: reject,
      });
    });
  }

  sessions(): (readonly string[])[] {
    return this.statements.map(({ sessions }) => sessions);
  }

  requests(): (string | undefined)[] {
    return this.statements.map((statement) => statement.request);
  }

  answerAll(): void {
    this.statements.forEach((statement) => statement.answer());
  }

  failAll(error: Error): void {
    this.statements.forEach((statement) => statement.fail(error));
  }
}

/** Returns the store's error for an error of PostgreSQL. */
function answerOf(code: string, severity = 'ERROR'): Error {
  return asStoreError(Object.assign(new Error(code), { code, severity }), true);
}
