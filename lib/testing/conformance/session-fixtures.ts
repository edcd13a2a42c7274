import { type NewSession, type Session, type SurfaceRules } from '../../ledger/session.js';
import { type CreatedSession } from '../../ledger/session.store.js';
import { type ConformanceContext } from './target.js';

export const HOUR = 3_600_000;

/** Milliseconds after which two times of any store's clock differ, timers that fire early included. */
export const TICK = 5;

/** A time to live that a test waits for. */
export const SHORT = 30;

/** The rules of surfaces that a store has by default. */
export const RULES: SurfaceRules = { policy: 'move', maxSurfaces: 16 };

/** Larger than any limit that a test of something else should meet. */
export const PLENTY = 65_536;

/** The most that a name may have, in UTF-16 code units, see `isName`. */
const LONGEST_NAME = 256;

/**
 * Names that a store could mistake for something else: quotes, patterns, keys of a prototype, text that a collation
 * folds together, text outside the Basic Multilingual Plane, and names of the greatest length.
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

/** The most that an id may have, see `assertId`. */
const LONGEST_ID = 200;

/**
 * Ids that begin with `prefix`, of sessions, turns and messages, that a store could take for one another; other
 * characters are refused before a store sees them.
 */
export function lookalikeIds(prefix: string): string[] {
  const tails = ['', 'A', 'a', '0', '00', '.', '_', '-', ':', '@', '/', '//', '+', '=', '==', '~', '/..', '.a', '_a'];
  const longest = LONGEST_ID - prefix.length;
  const long = ['a'.repeat(longest - 1), 'a'.repeat(longest), `${'a'.repeat(longest - 1)}b`];
  return [...tails, ...long].map((tail) => prefix + tail);
}

/** A session that does not exist yet, of a user that no other test has. */
export function draft(context: ConformanceContext, patch: Partial<NewSession> = {}): NewSession {
  return { id: context.id(), userId: context.id(), attachedSurfaces: [], metadata: {}, ...patch };
}

export async function create(context: ConformanceContext, patch: Partial<NewSession> = {}): Promise<Session> {
  return (await createdFrom(context, draft(context, patch))).session;
}

/** As create, with all that the store says. Surfaces are shared, so that sessions of one user leave each other alone. */
export function createdFrom(context: ConformanceContext, given: NewSession): Promise<CreatedSession> {
  return context.sessions.create(given, { ...RULES, policy: 'share' });
}

export async function createActive(context: ConformanceContext, patch: Partial<NewSession> = {}): Promise<Session> {
  const { id } = await create(context, patch);
  return (await context.sessions.touch(id)).session;
}

/** Milliseconds since 1970 by the store's clock. */
export async function storeTime(context: ConformanceContext): Promise<number> {
  return Date.parse((await create(context)).createdAt);
}

/** Inserts a session as it is, by default active now by the store's clock. */
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

/** Inserts an active session that was last touched `idleMs` before now, so that no test has to wait as long. */
export async function insertIdle(
  context: ConformanceContext,
  idleMs: number,
  patch: Partial<Session> = {},
): Promise<Session> {
  const then = new Date((await storeTime(context)) - idleMs).toISOString();
  return insert(context, { createdAt: then, lastActivityAt: then, stateChangedAt: then, version: 2, ...patch });
}

/** One active session for each of some idle times. */
export async function insertAllIdle(context: ConformanceContext, idleMs: readonly number[]): Promise<Session[]> {
  const sessions: Session[] = [];
  for (const ms of idleMs) sessions.push(await insertIdle(context, ms));
  return sessions;
}

export function idsOf(sessions: readonly Session[]): string[] {
  return sessions.map(({ id }) => id);
}
