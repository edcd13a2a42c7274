import { isDeepStrictEqual } from 'node:util';
import { type RecordedCall } from './history.js';
import { type SequentialModel } from './specimen.js';

/**
 * Whether there is an order of the calls, true to who was answered before whom called, in which the model gives every
 * client what it saw (Herlihy and Wing, 1990). Searches depth first, and visits no pair of calls done and state twice.
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

/** The calls that no other call of the rest was answered before. */
function firstOnes<Operation>(rest: readonly RecordedCall<Operation>[]): RecordedCall<Operation>[] {
  const firstAnswer = Math.min(...rest.map(({ answeredAt }) => answeredAt));
  return rest.filter(({ calledAt }) => calledAt < firstAnswer);
}

function copyOf<Model extends object>(model: Model): Model {
  return Object.assign(Object.create(Object.getPrototypeOf(model) as object) as Model, asJson(model));
}

/** Whether two values are the same JSON. */
export function isSame(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(asJson(a), asJson(b));
}

/** Test runners and native modules have arrays of their own realms, which deep equality would tell apart. */
function asJson<T>(value: T): T {
  return JSON.parse(JSON.stringify(value ?? null)) as T;
}
