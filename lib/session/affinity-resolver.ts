import { assertName, mintId } from '../common/ids.js';
import { SessionNotFoundError, SessionStateError } from '../ledger/session.errors.js';
import { encodeCursor } from '../ledger/session.cursor.js';
import { isSameSession } from '../ledger/session.lifecycle.js';
import { type Session, type SessionState } from '../ledger/session.js';
import { type SessionQuery } from '../ledger/session-query.js';
import { isChildSession } from './is-child-session.js';
import { type CreateSessionInput } from './session.inputs.js';
import { type SessionStore } from './session-store.service.js';

/** The user and surface of a message, and optionally the session that it names. */
export interface InboundMessage {
  readonly userId: string;
  readonly workspaceId?: string;
  readonly surfaceId?: string;
  readonly sessionId?: string;
}

/** Chooses the session that a message continues (SES-16). */
export abstract class AffinityResolver {
  /** Returns the session to continue, or `null` to create a new one. */
  abstract resolve(userId: string, surfaceId?: string): Promise<Session | null>;

  /**
   * Works like `resolve`, but receives the whole message. `resolveSession` prefers this method if it exists. If it
   * returns `undefined`, simultaneous messages share a new session; with `null`, each creates its own.
   */
  resolveMessage?(message: InboundMessage): Promise<Session | null | undefined>;
}

/** The methods of a session store that `resolveSession` uses. @inline */
export interface ResolvingStore
  extends
    Pick<SessionStore, 'get' | 'touch' | 'attachSurface'>,
    Partial<Pick<SessionStore, 'createOrAdopt' | 'isOver'>> {
  create(input: CreateSessionInput): Promise<Session>;
}

/** States in order of preference. */
const PREFERRED: readonly SessionState[] = ['active', 'suspended', 'created'];
const CANDIDATES = 50;

/**
 * Returns a resolver that prefers a live session of the same user and workspace with the surface, and otherwise the
 * user's most recently active one: first active ones, then suspended, then created. Never chooses the session of an
 * agent that was used as a tool.
 */
export function defaultAffinityResolver(
  store: Pick<SessionStore, 'find'> & Partial<Pick<SessionStore, 'isAbandoned'>>,
): Required<AffinityResolver> {
  /** Prefers sessions that are neither past their lifetime nor idle for long; more than one read is rarely needed. */
  const best = async (query: SessionQuery): Promise<Session | undefined> => {
    let cursor: string | undefined;
    for (let limit = 1, tried = 0; tried < CANDIDATES; limit = CANDIDATES) {
      const found = await store.find({ ...query, limit, ...(cursor === undefined ? {} : { cursor }) });
      const own = found.filter((session) => !isChildSession(session));
      const usable = own.find((session) => !store.isAbandoned?.(session));
      if (usable || found.length < limit) return usable;
      tried += own.length;
      // The second read starts from the beginning: a session may have become active meanwhile.
      if (limit > 1) cursor = encodeCursor(found[found.length - 1]);
    }
    return undefined;
  };
  const resolveMessage = async (message: InboundMessage): Promise<Session | undefined> => {
    const { userId, surfaceId, workspaceId = null } = message;
    // Without a user, the query would match the sessions of all users.
    assertName(userId, 'userId');
    const queries = surfaceId === undefined ? [{}] : [{ surfaceId }, {}];
    for (const query of queries) {
      for (const state of PREFERRED) {
        const session = await best({ ...query, userId, workspaceId, state });
        if (session) return session;
      }
    }
    return undefined;
  };
  return {
    resolveMessage,
    async resolve(userId, surfaceId) {
      return (await resolveMessage({ userId, ...(surfaceId === undefined ? {} : { surfaceId }) })) ?? null;
    },
  };
}

/**
 * Returns the session of a message: the one that it names, if that belongs to its user, or else the choice of the
 * resolver. The session is touched, and the surface attached. If there is none, creates one in state `created`. Without
 * a custom resolver, simultaneous messages get one session. A session of another user, or of another workspace than the
 * message names, is never touched. A resolver may choose a session without a workspace for any message of its user.
 */
export async function resolveSession(
  message: InboundMessage,
  store: ResolvingStore,
  resolver: AffinityResolver,
): Promise<Session> {
  const { userId, workspaceId, surfaceId } = message;
  const found = (await named(message, store)) ?? (await chosen(message, resolver));
  const continued = found && (await continueLive(found.id, message, store));
  if (continued) return continued;
  const draft = {
    userId,
    ...(workspaceId === undefined ? {} : { workspaceId }),
    ...(surfaceId === undefined ? {} : { initialSurfaceId: surfaceId }),
  };
  if (!store.createOrAdopt) return store.create({ id: mintId(), ...draft });
  return found === null ? store.create(draft) : store.createOrAdopt(draft);
}

async function named(message: InboundMessage, store: ResolvingStore): Promise<Session | undefined> {
  if (message.sessionId === undefined) return undefined;
  const session = await store.get(message.sessionId);
  const own = session?.userId === message.userId && (session.workspaceId ?? undefined) === message.workspaceId;
  return own && !(store.isOver?.(session) ?? session.state === 'expired') ? session : undefined;
}

function chosen(message: InboundMessage, resolver: AffinityResolver): Promise<Session | null | undefined> {
  if (resolver.resolveMessage) return resolver.resolveMessage(message);
  return resolver.resolve(message.userId, message.surfaceId);
}

/** Returns `null` if the stored session belongs to another user, has ended, or was deleted and created again meanwhile. */
async function continueLive(
  sessionId: string,
  { userId, workspaceId, surfaceId }: InboundMessage,
  store: ResolvingStore,
): Promise<Session | null> {
  // The resolver's result may be outdated.
  const stored = await store.get(sessionId);
  if (stored?.userId !== userId) return null;
  if (workspaceId !== undefined && (stored.workspaceId ?? workspaceId) !== workspaceId) return null;
  try {
    const options = { session: stored };
    const touched = await store.touch(sessionId, options);
    // A custom store may ignore the options.
    if (!isSameSession(stored, touched)) return null;
    if (surfaceId === undefined) return touched;
    const attached = await store.attachSurface(sessionId, surfaceId, options);
    return isSameSession(stored, attached) ? attached : null;
  } catch (error) {
    if (SessionStateError.isInstance(error) || SessionNotFoundError.isInstance(error)) return null;
    throw error;
  }
}
