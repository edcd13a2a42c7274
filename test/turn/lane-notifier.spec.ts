import { Logger } from '@nestjs/common';
import { LaneNotifier } from '../../lib/turn/lane-notifier.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { eventually } from '../support/eventually.js';
import { steadyClock } from '../support/steady-clock.js';

/** A queue that answers when the test releases it. */
function slowQueue() {
  const notifications: { readonly id: string; readonly answer: () => void; readonly fail: () => void }[] = [];
  const notify = (id: string): Promise<void> =>
    new Promise((resolve, reject) => {
      notifications.push({ id, answer: resolve, fail: () => reject(new Error('away')) });
    });
  return { notifications, notifier: new LaneNotifier({ notify }) };
}

describe('the lane notifier (TRN-21)', () => {
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
    const notifier = new LaneNotifier({ notify: throwing });
    await notifier.notify('a');
    await notifier.notify('b');
    expect(told('error')).toBe(1);
    await new LaneNotifier({ notify: () => Promise.reject(new Error('later')) }).notify('a');
    expect(told('error')).toBe(2);
  });

  it('TRN-21 waits a second for an answer, and not at all while there is none', async () => {
    const { notifications, notifier } = slowQueue();
    const startedAt = performance.now();
    await notifier.notify('a');
    expect(performance.now() - startedAt).toBeGreaterThan(990);
    const away = steadyClock.now();
    await notifier.notify('b');
    expect(steadyClock.now() - away).toBeLessThan(500);
    expect(notifications.map(({ id }) => id)).toEqual(['a', 'b']);
    // One line, without a stack.
    expect(lines).toEqual([
      'warn The queue does not answer. Turns are still accepted and stored, and run when the queue is available again. LaneNotifier',
    ]);
  });

  it('TRN-21 says once that the queue is back', async () => {
    const { notifications, notifier } = slowQueue();
    await notifier.notify('a');
    for (const { answer } of notifications) answer();
    await eventually(() => told('log') > 0);
    const more = notifier.notify('b');
    notifications[1].answer();
    await more;
    expect(lines).toEqual([
      expect.stringMatching(/^warn The queue does not answer/),
      expect.stringMatching(/^log The queue is available again\. Waiting turns continue\./),
    ]);
  });

  it('TRN-21 one notification of a lane waits for a queue that is away; afterwards every notification counts again', async () => {
    const { notifications, notifier } = slowQueue();
    await notifier.notify('a');
    for (let n = 0; n < 100; n += 1) await Promise.all([notifier.notify('a'), notifier.notify('b')]);
    expect(notifications.map(({ id }) => id)).toEqual(['a', 'b']);

    for (const { answer } of notifications.splice(0)) answer();
    await eventually(() => {
      void notifier.notify('a');
      void notifier.notify('a');
      const notified = notifications.length;
      for (const { answer } of notifications.splice(0)) answer();
      return notified === 2;
    });
  });

  it('TRN-21 a lane whose notification failed is notified again, and an outage after an outage is told of', async () => {
    const { notifications, notifier } = slowQueue();
    for (const outage of [1, 2]) {
      const notified = notifier.notify('a');
      notifications.splice(0).forEach(({ fail }) => fail());
      await notified;
      expect(told('error')).toBe(outage);
      await notifier.notify('a');
      notifications.splice(0).forEach(({ answer }) => answer());
      // Its answer ends the outage.
      await Promise.resolve();
      await Promise.resolve();
    }
  });
});
