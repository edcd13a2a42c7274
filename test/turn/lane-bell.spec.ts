import { Logger } from '@nestjs/common';
import { LaneBell } from '../../lib/turn/lane-bell.js';
import { eventually } from '../support/eventually.js';
import { steadyClock } from '../support/steady-clock.js';

/** A queue that answers when it is told to. */
function slowQueue() {
  const rings: { readonly id: string; readonly answer: () => void; readonly fail: () => void }[] = [];
  const ring = (id: string): Promise<void> =>
    new Promise((resolve, reject) => {
      rings.push({ id, answer: resolve, fail: () => reject(new Error('away')) });
    });
  return { rings, bell: new LaneBell({ ring }) };
}

describe('the bell of the lanes (TRN-21)', () => {
  let errors: unknown[] = [];

  beforeEach(() => {
    errors = [];
    const nothing = (): void => undefined;
    const error = (message: unknown): void => void errors.push(message);
    Logger.overrideLogger({ log: nothing, warn: nothing, error });
  });

  afterEach(() => {
    Logger.overrideLogger(false);
  });

  it('TRN-21 fails nobody when the queue throws, at once or later, and says so once', async () => {
    const throwing = (): never => {
      throw new Error('at once');
    };
    const bell = new LaneBell({ ring: throwing });
    await bell.ring('a');
    await bell.ring('b');
    expect(errors).toHaveLength(1);
    await new LaneBell({ ring: () => Promise.reject(new Error('later')) }).ring('a');
    expect(errors).toHaveLength(2);
  });

  it('TRN-21 waits a second for an answer, and not at all while there is none', async () => {
    const { rings, bell } = slowQueue();
    const startedAt = performance.now();
    await bell.ring('a');
    expect(performance.now() - startedAt).toBeGreaterThan(990);
    const away = steadyClock.now();
    await bell.ring('b');
    expect(steadyClock.now() - away).toBeLessThan(500);
    expect(rings.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(errors).toHaveLength(1);
  });

  it('TRN-21 one ring of a lane waits for a queue that is away; afterwards every ring counts again', async () => {
    const { rings, bell } = slowQueue();
    await bell.ring('a');
    for (let n = 0; n < 100; n += 1) await Promise.all([bell.ring('a'), bell.ring('b')]);
    expect(rings.map(({ id }) => id)).toEqual(['a', 'b']);

    for (const { answer } of rings.splice(0)) answer();
    await eventually(() => {
      void bell.ring('a');
      void bell.ring('a');
      const rung = rings.length;
      for (const { answer } of rings.splice(0)) answer();
      return rung === 2;
    });
  });

  it('TRN-21 a lane whose ring failed is rung for again, and an outage after an outage is told of', async () => {
    const { rings, bell } = slowQueue();
    for (const outage of [1, 2]) {
      const rung = bell.ring('a');
      rings.splice(0).forEach(({ fail }) => fail());
      await rung;
      expect(errors).toHaveLength(outage);
      await bell.ring('a');
      rings.splice(0).forEach(({ answer }) => answer());
      // Its answer ends the outage.
      await Promise.resolve();
      await Promise.resolve();
    }
  });
});
