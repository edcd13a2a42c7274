/** A store that answered fast and wrong has failed. */
export class WrongAnswerError extends Error {}

/** @throws WrongAnswerError */
export function expectSame(what: string, found: unknown, wanted: unknown): void {
  const [is, shouldBe] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (is !== shouldBe) throw new WrongAnswerError(`${what}: ${is}, not ${shouldBe}.`);
}
