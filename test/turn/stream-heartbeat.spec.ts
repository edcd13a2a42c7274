import { jest } from '@jest/globals';
import { StreamHeartbeat } from '../../lib/turn/stream-heartbeat.js';

describe('StreamHeartbeat', () => {
  const pace = { isFull: false };
  const comments: string[] = [];
  let heartbeat: StreamHeartbeat;

  beforeEach(() => {
    jest.useFakeTimers();
    pace.isFull = false;
    comments.length = 0;
    heartbeat = new StreamHeartbeat(pace, (comment) => comments.push(comment));
  });

  afterEach(() => {
    heartbeat.stop();
    jest.useRealTimers();
  });

  it('AIS-35 sends 4 KiB whenever nothing was sent for 15 s', () => {
    jest.advanceTimersByTime(14_000);
    heartbeat.sent();
    jest.advanceTimersByTime(14_999);
    expect(comments).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(comments.map(({ length }) => length)).toEqual([4096]);
    jest.advanceTimersByTime(30_000);
    expect(comments).toHaveLength(3);
  });

  it('AIS-35 sends nothing to a client that does not read', () => {
    pace.isFull = true;
    jest.advanceTimersByTime(30_000);
    expect(comments).toEqual([]);
  });

  it('AIS-35 leaves no timer after the end of a stream', () => {
    heartbeat.stop();
    heartbeat.sent();
    expect(jest.getTimerCount()).toBe(0);
  });
});
