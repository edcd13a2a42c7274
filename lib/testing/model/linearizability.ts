import { isDeepStrictEqual } from 'node:util';
import { type RecordedCall } from './history.js';
import { type SequentialModel } from './specimen.js';

/**
 * Returns whether the model explains all outcomes in some order of the calls. A call that was answered before another
 * was sent must come first (Herlihy and Wing, 1990). Searches depth first, and visits no pair of state and calls twice.
 */
export function isLinearizable<Operation>(
  history: readonly RecordedCall<Operation>[],
  model: SequentialModel<Operation>,
): boolean {
  const seen = new Set<string>();

  const search = (rest: readonly RecordedCall<Operation>[], state: SequentialModel<Operation>): boolean => {
    if (rest.length === 0) return true;
    const place = JSON.stringify([rest.map(({ calledAt }) => calledAt), state]);
    if (seen.has(place)) return false;
    seen.add(place);
    return firstOnes(rest).some((call) => {
      const after = copyOf(state);
      const expected = after.apply(call.operation, call.outcome);
      return (
        isSame(call.outcome, expected) &&
        search(
          rest.filter((other) => other !== call),
          after,
        )
      );
    });
  };

  return search(history, model);
}

/** Returns the calls that started before any other remaining call was answered. */
function firstOnes<Operation>(rest: readonly RecordedCall<Operation>[]): RecordedCall<Operation>[] {
  const firstAnswer = Math.min(...rest.map(({ answeredAt }) => answeredAt));
  return rest.filter(({ calledAt }) => calledAt < firstAnswer);
}

function copyOf<Model extends object>(model: Model): Model {
  const fields = JSON.parse(JSON.stringify(model)) as Model;
  return Object.assign(Object.create(Object.getPrototypeOf(model) as object) as Model, fields);
}

/**
 * Returns whether two values are the same JSON. Compares their texts, because deep equality would distinguish arrays of other realms (test
 * runners, native modules).
 */
export function isSame(a: unknown, b: unknown): boolean {
  const [one, other] = [JSON.stringify(a ?? null), JSON.stringify(b ?? null)];
  // The order of keys may differ.
  return one === other || isDeepStrictEqual(JSON.parse(one), JSON.parse(other));
}
