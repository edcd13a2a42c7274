import { jest } from '@jest/globals';
import { RefusalLog } from '../../lib/http/state/refusal-log.js';

const MINUTE = 60_000;

describe('RefusalLog', () => {
  const lines: string[] = [];
  let log: RefusalLog;

  beforeEach(() => {
    jest.useFakeTimers();
    lines.length = 0;
    log = new RefusalLog({ log: (line: string) => void lines.push(line) });
  });

  afterEach(() => {
    log.close();
    jest.useRealTimers();
  });

  it('FIX-54 logs the first request at once, and later ones as a number each minute', () => {
    for (let minute = 0; minute < 3; minute += 1) {
      for (let n = 0; n < 1000; n += 1) log.add('describe', 'UNAUTHENTICATED', `first of minute ${minute}`);
      jest.advanceTimersByTime(MINUTE);
    }
    const more = (count: number) =>
      `describe: ${count} more requests without a principal were refused since the last line (UNAUTHENTICATED).`;
    expect(lines).toEqual(['first of minute 0', more(999), more(1000), more(1000)]);
  });

  it('FIX-54 forgets a route without rejections for a minute', () => {
    log.add('describe', 'UNAUTHENTICATED', 'one');
    log.add('reset', 'FORBIDDEN', 'two');
    expect(jest.getTimerCount()).toBe(2);
    jest.advanceTimersByTime(MINUTE);
    expect(jest.getTimerCount()).toBe(0);

    log.add('describe', 'UNAUTHENTICATED', 'three');
    expect(lines).toEqual(['one', 'two', 'three']);
  });

  it('FIX-54 logs the pending counts when the process stops', () => {
    for (let n = 0; n < 3; n += 1) log.add('reset', n < 2 ? 'UNAUTHENTICATED' : 'FORBIDDEN', 'one');
    log.close();
    log.close();

    expect(jest.getTimerCount()).toBe(0);
    expect(lines).toEqual([
      'one',
      'reset: 2 more requests without a principal were refused since the last line (UNAUTHENTICATED, FORBIDDEN).',
    ]);
  });
});
