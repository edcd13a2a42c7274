import { Logger } from '@nestjs/common';
import { LaneBell } from '../../lib/turn/lane-bell.js';
import { capturingLogger } from '../support/capturing-logger.js';
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
  let lines: string[] = [];
  const told = (level: string): number => lines.filter((line) => line.startsWith(`${level} `)).length;

  beforeEach(() => {
    const captured = capturingLogger();
    lines = captured.lines;
    Logger.overrideLogger(captured.logger);
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
    expect(told('error')).toBe(1);
    await new LaneBell({ ring: () => Promise.reject(new Error('later')) }).ring('a');
    expect(told('error')).toBe(2);
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
    // One line, without a stack.
    expect(lines).toEqual([
      'warn The queue does not answer. Turns are accepted, stored and wait for it; nothing is lost. LaneBell',
    ]);
  });

  it('TRN-21 says once that the queue is back', async () => {
    const { rings, bell } = slowQueue();
    await bell.ring('a');
    for (const { answer } of rings) answer();
    await eventually(() => told('log') > 0);
    const more = bell.ring('b');
    rings[1].answer();
    await more;
    expect(lines).toEqual([
      expect.stringMatching(/^warn The queue does not answer/),
      expect.stringMatching(/^log The queue is back: what waited for it goes on\./),
    ]);
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
      expect(told('error')).toBe(outage);
      await bell.ring('a');
      rings.splice(0).forEach(({ answer }) => answer());
      // Its answer ends the outage.
      await Promise.resolve();
      await Promise.resolve();
    }
  });
});
