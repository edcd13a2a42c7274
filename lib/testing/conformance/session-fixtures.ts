import { type NewSession, type Session, type SurfaceRules } from '../../ledger/session.js';
import { type CreatedSession } from '../../ledger/session.store.js';
import { type ConformanceContext } from './target.js';

export const HOUR = 3_600_000;

/** Milliseconds after which two times of any store's clock differ, even if timers fire early. */
export const TICK = 5;

/** A time to live in milliseconds, short enough for tests to wait for. */
export const SHORT = 30;

/** The default surface rules of a store. */
export const RULES: SurfaceRules = { policy: 'move', maxSurfaces: 16 };

/** A limit that tests of other behaviour never reach. */
export const PLENTY = 65_536;

/** The maximum length of a name in UTF-16 code units, see `isName`. */
const LONGEST_NAME = 256;

/**
 * Names that a store could misinterpret: quotes, patterns, prototype keys, strings that a collation
 * treats as equal, characters outside the Basic Multilingual Plane, and names of the maximum length.
 */
export const HOSTILE_NAMES: readonly string[] = [
  `o'brien "the" \`quote\``,
  "'; DROP TABLE session; --",
  '100%',
  '100_',
  '100x',
  'back\\slash',
  '{curly}:[square]*?',
  '$where.a.b',
  'Ann',
  'ann',
  'ánn',
  'a\u0301nn',
  'ann ',
  ' ann',
  'straße',
  'STRASSE',
  'مرحبا \u202Eabc',
  '日本語',
  '👩‍👩‍👧‍👦',
  '\u{10FFFF}',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'null',
  'undefined',
  '0',
  'ANN',
  'ann\u200B',
  'ann\u200F',
  '\uFF41nn',
  'i',
  '\u0130',
  '\u0131',
  '*',
  'a'.repeat(LONGEST_NAME - 1),
  'a'.repeat(LONGEST_NAME),
  `${'a'.repeat(LONGEST_NAME - 1)}b`,
  '日'.repeat(LONGEST_NAME),
  '\u{10FFFF}'.repeat(LONGEST_NAME / 2),
];

/** The maximum length of an id, see `assertId`. */
const LONGEST_ID = 200;

/**
 * Returns ids of sessions, turns or messages that begin with `prefix` and that a store could confuse. Other
 * characters are rejected before they reach a store.
 */
export function lookalikeIds(prefix: string): string[] {
  const tails = ['', 'A', 'a', '0', '00', '.', '_', '-', ':', '@', '/', '//', '+', '=', '==', '~', '/..', '.a', '_a'];
  const longest = LONGEST_ID - prefix.length;
  const long = ['a'.repeat(longest - 1), 'a'.repeat(longest), `${'a'.repeat(longest - 1)}b`];
  return [...tails, ...long].map((tail) => prefix + tail);
}

/** Returns a draft of a session, by default of a user that no other test uses. */
export function draft(context: ConformanceContext, patch: Partial<NewSession> = {}): NewSession {
  return { id: context.id(), userId: context.id(), attachedSurfaces: [], metadata: {}, ...patch };
}

export async function create(context: ConformanceContext, patch: Partial<NewSession> = {}): Promise<Session> {
  return (await createdFrom(context, draft(context, patch))).session;
}

/** Creates a session and returns the complete change. Surfaces are shared, so sessions do not affect each other. */
export function createdFrom(context: ConformanceContext, given: NewSession): Promise<CreatedSession> {
  return context.sessions.create(given, { ...RULES, policy: 'share' });
}

export async function createActive(context: ConformanceContext, patch: Partial<NewSession> = {}): Promise<Session> {
  const { id } = await create(context, patch);
  return (await context.sessions.touch(id)).session;
}

/** Returns the time of the store's clock in milliseconds since 1970. */
export async function storeTime(context: ConformanceContext): Promise<number> {
  return Date.parse((await create(context)).createdAt);
}

/** Inserts a session unchanged, by default active now by the store's clock. */
export async function insert(context: ConformanceContext, patch: Partial<Session> = {}): Promise<Session> {
  const now = new Date(await storeTime(context)).toISOString();
  const session: Session = {
    ...draft(context),
    state: 'active',
    createdAt: now,
    lastActivityAt: now,
    version: 1,
    ...patch,
  };
  await context.sessions.insert(session);
  return session;
}

/** Inserts an active session that was last touched `idleMs` ago, so that tests need not wait. */
export async function insertIdle(
  context: ConformanceContext,
  idleMs: number,
  patch: Partial<Session> = {},
): Promise<Session> {
  const then = new Date((await storeTime(context)) - idleMs).toISOString();
  return insert(context, { createdAt: then, lastActivityAt: then, stateChangedAt: then, version: 2, ...patch });
}

/** Inserts one active session for each idle time. */
export async function insertAllIdle(context: ConformanceContext, idleMs: readonly number[]): Promise<Session[]> {
  const sessions: Session[] = [];
  for (const ms of idleMs) sessions.push(await insertIdle(context, ms));
  return sessions;
}

export function idsOf(sessions: readonly Session[]): string[] {
  return sessions.map(({ id }) => id);
}
