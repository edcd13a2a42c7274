/** Thrown for a wrong answer, which is a failure however fast it is. */
export class WrongAnswerError extends Error {}

/** @throws WrongAnswerError */
export function expectSame(what: string, found: unknown, wanted: unknown): void {
  const [is, shouldBe] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (is !== shouldBe) throw new WrongAnswerError(`${what}: ${is}, not ${shouldBe}.`);
}
