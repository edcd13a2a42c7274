import { type JsonObject, type Session } from 'nestjs-agent-sessions';

/**
 * The data of a filled store. All sessions are alike, so that a large store differs from a small one by its size only. A user has four
 * sessions, two of them active, in a workspace of a hundred users. Each session has one surface, every other one two. Each had one turn,
 * with a checkpoint and two messages. The last activity was two hours to twenty days ago.
 */
export interface Population {
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly filledAt: number;
}

export const ORCHESTRATOR = 'support-desk';
export const VERSION = '1';
export const SESSIONS_OF_USER = 4;
export const FIRST_KEY = 'first';
export const FIRST_HASH = 'hash';

/** The distance, or a multiple of it, between the numbers of users in the same workspace. */
const USERS_OF_WORKSPACE = 25;
/** Spreads neighbours over the whole range, like random ids. */
const SCATTER = 2_654_435_761;
const HOUR_MS = 3_600_000;
const SECONDS_OF_ACTIVITY = 1_700_000;
const ACTIVITY_STEP = 7919;
const NOTE = 'The customer has been a subscriber since spring and prefers to be answered in short sentences. '.repeat(
  2,
);

/** Returns the same as a SQL expression over a number `n`. */
export interface PopulationSql {
  readonly id: string;
  readonly userId: string;
  readonly workspaceId: string;
  readonly state: string;
  readonly lastActivityAt: string;
  readonly surfaces: string;
  readonly metadata: string;
  readonly request: string;
  readonly reply: string;
  readonly checkpoint: string;
  readonly question: string;
  readonly answer: string;
}

export function idOf(n: number): string {
  return `${(Math.imul(n, SCATTER) >>> 0).toString(16).padStart(8, '0')}-${n}`;
}

export function userOf(n: number, { count }: Population): string {
  return `user-${n % (count / SESSIONS_OF_USER)}`;
}

export function surfaceOf(n: number): string {
  return `phone-${n}`;
}

export function sessionOf(n: number, population: Population): Session {
  const { count, filledAt } = population;
  const user = n % (count / SESSIONS_OF_USER);
  const active = Math.floor((n * SESSIONS_OF_USER) / count) < SESSIONS_OF_USER / 2;
  const lastActivityAt = filledAt - 2 * HOUR_MS - ((n * ACTIVITY_STEP) % SECONDS_OF_ACTIVITY) * 1000;
  const stateChangedAt = active ? lastActivityAt : lastActivityAt + HOUR_MS;
  return {
    id: idOf(n),
    userId: `user-${user}`,
    workspaceId: `space-${user % workspaces(count)}`,
    state: active ? 'active' : 'suspended',
    createdAt: new Date(lastActivityAt - HOUR_MS).toISOString(),
    lastActivityAt: new Date(lastActivityAt).toISOString(),
    stateChangedAt: new Date(stateChangedAt).toISOString(),
    attachedSurfaces: n % 2 === 0 ? [surfaceOf(n)] : [surfaceOf(n), `mail-${n}`],
    metadata: { plan: 'pro', number: n },
    version: 3,
  };
}

export const turnIdOf = (n: number): string => `turn-${idOf(n)}`;
export const questionOf = (n: number): string => `Where is order ${n}?`;
export const answerOf = (n: number): string => `Order ${n} was shipped and will arrive tomorrow.`;
export const stateOf = (n: number): JsonObject => ({ orderId: n, note: NOTE });

/** The differences between PostgreSQL and SQLite. */
export interface SqlForms {
  /** Formats a number as eight hexadecimal digits. */
  readonly hex: (value: string) => string;
  /** The format in which the store keeps a session's metadata. */
  readonly metadata: string;
}

export function populationSql({ count, filledAt }: Population, { hex, metadata }: SqlForms): PopulationSql {
  const user = `(n % ${count / SESSIONS_OF_USER})`;
  return {
    id: `${hex(`(n * ${SCATTER}) % 4294967296`)} || '-' || n`,
    userId: `'user-' || ${user}`,
    workspaceId: `'space-' || (${user} % ${workspaces(count)})`,
    state: `CASE WHEN n < ${count / 2} THEN 'active' ELSE 'suspended' END`,
    lastActivityAt: `${filledAt - 2 * HOUR_MS} - ((n * ${ACTIVITY_STEP}) % ${SECONDS_OF_ACTIVITY}) * 1000`,
    surfaces: `CASE WHEN n % 2 = 0 THEN '["phone-' || n || '"]' ELSE '["phone-' || n || '","mail-' || n || '"]' END`,
    metadata,
    request: `'{"input":{"text":"Where is order ' || n || '?"}}'`,
    reply: `'{"text":"Order ' || n || ' was shipped and will arrive tomorrow."}'`,
    checkpoint: `'{"orderId":' || n || ',"note":"${NOTE}"}'`,
    question: `'{"content":"Where is order ' || n || '?"}'`,
    answer: `'{"content":"Order ' || n || ' was shipped and will arrive tomorrow."}'`,
  };
}

function workspaces(count: number): number {
  return Math.max(1, Math.floor(count / SESSIONS_OF_USER / USERS_OF_WORKSPACE));
}
