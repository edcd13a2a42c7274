import { SessionNotFoundError, SessionStateError } from './session.errors.js';
import { type Session, type SessionState } from './session.js';
import { type SessionQuery } from './session.inputs.js';
import { type SessionStore } from './session-store.service.js';

/** Who speaks through which surface, and optionally the session that the message names. */
export interface InboundMessage {
  readonly userId: string;
  readonly workspaceId?: string;
  readonly surfaceId?: string;
  readonly sessionId?: string;
}

/** Decides which session a message continues (SES-16). */
export abstract class AffinityResolver {
  /** The best session to continue, or `null` to start a new one. */
  abstract resolve(userId: string, surfaceId?: string, message?: InboundMessage): Promise<Session | null>;
}

/** In the order in which they are preferred. */
const PREFERRED: readonly SessionState[] = ['active', 'suspended', 'created'];
const CANDIDATES = 50;

/**
 * Prefers a live session of the same user and workspace that holds the surface, else the user's most recently active
 * one: active ones first, then suspended, then created.
 */
export function defaultAffinityResolver(
  store: Pick<SessionStore, 'find'> & Partial<Pick<SessionStore, 'isOver'>>,
): AffinityResolver {
  /** Those that outlived their lifetime come last, nobody can touch them: looking for more than one is rare. */
  const best = async (query: SessionQuery): Promise<Session | undefined> => {
    for (const limit of [1, CANDIDATES]) {
      const found = await store.find({ ...query, limit });
      const usable = found.find((session) => !store.isOver?.(session));
      if (usable || found.length < limit) return usable;
    }
    return undefined;
  };
  return {
    async resolve(userId, surfaceId, message) {
      const workspaceId = message?.workspaceId ?? null;
      const queries = surfaceId === undefined ? [{}] : [{ surfaceId }, {}];
      for (const query of queries) {
        for (const state of PREFERRED) {
          const session = await best({ ...query, userId, workspaceId, state });
          if (session) return session;
        }
      }
      return null;
    },
  };
}

/**
 * The session that a message belongs to: the one it names, when that is its user's own; else the resolver's choice,
 * touched and with the surface attached; else a new one in state `created`. Messages that arrive at once get one session.
 */
export async function resolveSession(
  message: InboundMessage,
  store: SessionStore,
  resolver: AffinityResolver,
): Promise<Session> {
  const { userId, workspaceId, surfaceId } = message;
  const session = (await named(message, store)) ?? (await resolver.resolve(userId, surfaceId, message));
  const continued = session && (await continueLive(session, surfaceId, store));
  if (continued) return continued;
  return store.createOrAdopt({
    userId,
    ...(workspaceId === undefined ? {} : { workspaceId }),
    ...(surfaceId === undefined ? {} : { initialSurfaceId: surfaceId }),
  });
}

async function named(message: InboundMessage, store: SessionStore): Promise<Session | null> {
  if (message.sessionId === undefined) return null;
  const session = await store.get(message.sessionId);
  const own = session?.userId === message.userId && session.workspaceId === message.workspaceId;
  return own && session.state !== 'expired' ? session : null;
}

/** Null when the session ended after the look. */
async function continueLive(
  { id }: Session,
  surfaceId: string | undefined,
  store: SessionStore,
): Promise<Session | null> {
  try {
    const touched = await store.touch(id);
    return surfaceId === undefined ? touched : await store.attachSurface(id, surfaceId);
  } catch (error) {
    if (error instanceof SessionStateError || error instanceof SessionNotFoundError) return null;
    throw error;
  }
}
