import { Deadline, DeadlineError } from '../../lib/common/deadline.js';
import { rejection } from '../support/running-application.js';

describe('Deadline', () => {
  it('NST-20 TRN-01 has passed when a wait times out, even if the timer fires early', async () => {
    const deadlines = Array.from({ length: 100 }, (_, at) => new Deadline(20 + at / 7));
    const ends = deadlines.map(async (deadline) => {
      await rejection(deadline.wait(new Promise(() => {})), DeadlineError);
      return deadline.isOver;
    });

    expect(await Promise.all(ends)).toEqual(deadlines.map(() => true));
  });
});
