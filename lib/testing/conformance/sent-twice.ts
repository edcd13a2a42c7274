import { isDeepStrictEqual } from 'node:util';
import { SessionsError } from '../../common/sessions.error.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

/** A call that is ready to be sent, once or again because its answer was lost. */
export interface Call<Answer> {
  readonly send: (adapter: SessionsAdapter) => Promise<Answer>;
  /** What it answers when it was sent before, by what it answered then; {@link Refused} when it throws. */
  readonly again: (first: Answer) => unknown;
  /** Everything that it may change. */
  readonly look: () => Promise<unknown>;
}

/** An answer that was an error. */
export class Refused {
  constructor(readonly code: string) {}
}

/**
 * Registers two tests: that a call which is sent again, and one that is sent twice at once by two clients, do nothing
 * twice, and that the second answer is right.
 * @param prepare makes everything anew that the call needs, always in the same way
 */
export function itMayBeSentTwice<Answer>(
  title: string,
  context: ConformanceContext,
  prepare: () => Promise<Call<Answer>>,
): void {
  it(`${title}, sent again`, async () => {
    const { send, again, look } = await prepare();
    const first = await send(context.adapter);
    const before = await look();
    // What depends on time would show.
    await context.elapse(TICK);

    expect(await answerOf(send(context.adapter))).toEqual(again(first));
    expect(await look()).toEqual(before);
  });

  it(`${title}, sent twice at once`, async () => {
    const [once, twice] = [await prepare(), await prepare()];
    // Activity in the same millisecond as the one before changes nothing.
    await context.elapse(TICK);
    await once.send(context.adapter);
    const [one, other] = await Promise.all(
      [context.clients[0], context.clients[context.clients.length - 1]].map((client) => answerOf(twice.send(client))),
    );

    const [first, second] = isFirst(one, other) ? [one, other] : [other, one];
    expect(first).not.toBeInstanceOf(Refused);
    expect(second).toEqual(twice.again(first as Answer));
    expect(anonymous(await twice.look())).toEqual(anonymous(await once.look()));

    function isFirst(first: unknown, second: unknown): boolean {
      return !(first instanceof Refused) && isDeepStrictEqual(plain(twice.again(first as Answer)), plain(second));
    }
  });
}

async function answerOf(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof SessionsError) return new Refused(error.code);
    throw error;
  }
}

/** A store's driver may make its arrays in another realm. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

/** Without ids, times and versions by the clock, which differ between two that were made in the same way. */
function anonymous(value: unknown): unknown {
  const text = JSON.stringify(value)
    .replace(/[0-9a-f]{32}/g, 'id')
    .replace(/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, '"time"')
    .replace(/"version":\d{13,}/g, '"version":"by the clock"');
  return JSON.parse(text);
}
