import { isDeepStrictEqual } from 'node:util';
import { SessionsError } from '../../common/sessions.error.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { TICK } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

/** A prepared call that can be sent once, or again after a lost response. */
export interface Call<Answer> {
  readonly send: (adapter: SessionsAdapter) => Promise<Answer>;
  /** Returns the expected repeated answer for the first answer; {@link Refused} when the repeat throws. */
  readonly again: (first: Answer) => unknown;
  /** Reads all data that the call may change. */
  readonly look: () => Promise<unknown>;
}

/** An error as the answer of a call. */
export class Refused {
  constructor(readonly code: string) {}
}

/**
 * Registers two tests of a repeated call: sent again, and sent by two clients concurrently. It must have its effect
 * once, and the second answer must be correct.
 * @param prepare creates new data for the call, always in the same way
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
    // Let time pass, so that a second effect on times would be visible.
    await context.elapse(TICK);

    expect(await answerOf(send(context.adapter))).toEqual(again(first));
    expect(await look()).toEqual(before);
  });

  it(`${title}, sent twice at once`, async () => {
    const [once, twice] = [await prepare(), await prepare()];
    // Activity in the same millisecond as the previous one changes nothing.
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

/** Copies values, because a store's driver may create its arrays in another realm. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

/** Removes ids, times and versions by the clock, which differ between two equal data sets. */
function anonymous(value: unknown): unknown {
  const text = JSON.stringify(value)
    .replace(/[0-9a-f]{32}/g, 'id')
    .replace(/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, '"time"')
    .replace(/"version":\d{13,}/g, '"version":"by the clock"');
  return JSON.parse(text);
}
