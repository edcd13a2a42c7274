/** The errors of tools that must fail the attempt. The SDK would give them to the model. */
const failures = new WeakMap<object, { readonly error: unknown }>();

/** Makes the next model call of this turn context throw the error, so that a loop of the SDK ends. */
export function failAttempt(turn: object, error: unknown): void {
  if (!failures.has(turn)) failures.set(turn, { error });
}

/** @throws the error of {@link failAttempt} */
export function assertNotFailed(turn: object): void {
  const failure = failures.get(turn);
  if (failure) throw failure.error;
}
