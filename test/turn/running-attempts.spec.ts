import { RunningAttempts } from '../../lib/turn/running-attempts.js';
import { type TurnAttempt } from '../../lib/turn/turn-attempt.js';
import { eventually } from '../support/eventually.js';

describe('running attempts', () => {
  it('TRN-15 are kept for as long as they run', async () => {
    const attempts = new RunningAttempts(5);
    const [first, second] = [counted(), counted()];
    attempts.add('one', first.attempt);
    attempts.add('two', second.attempt);
    await eventually(() => first.kept() > 2 && second.kept() > 2);

    attempts.remove('one', first.attempt);
    const before = { first: first.kept(), second: second.kept() };
    await eventually(() => second.kept() > before.second + 2);
    expect(first.kept()).toBe(before.first);
    expect(attempts.get('one')).toBeUndefined();
    expect(attempts.list()).toEqual([second.attempt]);
    attempts.remove('two', second.attempt);
  });

  it('TRN-15 begin to be kept again after none ran for a while', async () => {
    const attempts = new RunningAttempts(5);
    for (let round = 0; round < 3; round += 1) {
      const { attempt, kept } = counted();
      attempts.add('one', attempt);
      await eventually(() => kept() > 1);
      attempts.remove('one', attempt);
      // Kept by nobody: the timer goes.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });

  it('TRN-15 one that has lost its turn to another attempt here finds it out at once, and takes nothing of it away', () => {
    const attempts = new RunningAttempts(60_000);
    const [lost, later] = [counted(), counted()];
    attempts.add('one', lost.attempt);
    attempts.add('one', later.attempt);
    expect([lost.kept(), later.kept()]).toEqual([1, 0]);

    attempts.remove('one', lost.attempt);
    expect(attempts.get('one')).toBe(later.attempt);
    attempts.remove('one', later.attempt);
    expect(attempts.list()).toEqual([]);
  });
});

/** All that is asked of an attempt here. */
function counted() {
  let kept = 0;
  const attempt = { keep: () => (kept += 1) } as unknown as TurnAttempt;
  return { attempt, kept: () => kept };
}
