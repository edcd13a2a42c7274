import { SessionsError } from 'nestjs-agent-sessions';

/** Returns the error that a call rejects with. Every error must be a rejection, not a throw. */
export async function failureOf(call: () => Promise<unknown>): Promise<unknown> {
  const promise = call();
  return promise.then(
    () => {
      throw new Error('The call should have been refused.');
    },
    (reason: unknown) => reason,
  );
}

export function expectError(
  error: unknown,
  type: new (...args: never[]) => SessionsError,
  code: string,
  message?: string,
): asserts error is SessionsError {
  expect(error).toBeInstanceOf(type);
  expect(error).toBeInstanceOf(SessionsError);
  expect(error).toMatchObject({ name: type.name, code });
  if (message !== undefined) expect((error as Error).message).toBe(message);
}
