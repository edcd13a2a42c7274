/** The server is away, or cannot answer now: the same again later may do. */
export class Unreachable extends Error {}

/** The server has answered, and does not want this. */
export class Refused extends Error {
  constructor({ code, message }) {
    super(message);
    this.code = code;
  }
}

const LONGEST_MS = 10_000;
/** Took too long, or asked too often. */
const LATER = [408, 429];

/**
 * Asks the server. Who asks, and in which conversation, is in cookies that no script can read.
 * @throws Unreachable, Refused
 */
export async function ask(path, { method = 'GET', body, headers = {} } = {}) {
  try {
    const response = await fetch(path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(LONGEST_MS),
    });
    const answer = response.status === 204 ? null : await response.json();
    if (response.ok) return answer;
    if (response.status < 500 && !LATER.includes(response.status)) throw new Refused(answer);
  } catch (error) {
    if (error instanceof Refused) throw error;
  }
  throw new Unreachable();
}
