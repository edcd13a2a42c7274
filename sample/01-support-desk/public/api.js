/** The server cannot be reached or cannot answer now. The same request may succeed later. */
export class Unreachable extends Error {}

/** The server rejected the request. */
export class Refused extends Error {
  constructor({ code, message }) {
    super(message);
    this.code = code;
  }
}

const LONGEST_MS = 10_000;
/** Statuses for a timeout and for too many requests. */
const LATER = [408, 429];

/**
 * Sends a request. Cookies that scripts cannot read identify the user and the conversation.
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
