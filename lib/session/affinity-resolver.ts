import { type Session, type SessionState } from './session.js';
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
const LIVE: readonly SessionState[] = ['active', 'suspended', 'created'];

/**
 * Prefers a live session of the same user and workspace that holds the surface, else the user's most recently active
 * one: active ones first, then suspended, then created.
 */
export function defaultAffinityResolver(store: Pick<SessionStore, 'page'>): AffinityResolver {
  return {
    async resolve(userId, surfaceId, message) {
      const workspaceId = message?.workspaceId;
      const surfaces = surfaceId === undefined ? [undefined] : [surfaceId, undefined];
      for (const surface of surfaces) {
        for (const state of LIVE) {
          const found = await latest(store, userId, workspaceId, state, surface);
          if (found) return found;
        }
      }
      return null;
    },
  };
}

/**
 * The session that a message belongs to: the one it names, when that is its user's own; else the resolver's choice,
 * touched and with the surface attached; else a new one in state `created`.
 */
export async function resolveSession(
  message: InboundMessage,
  store: SessionStore,
  resolver: AffinityResolver,
): Promise<Session> {
  const { userId, workspaceId, surfaceId } = message;
  const session = (await named(message, store)) ?? (await resolver.resolve(userId, surfaceId, message));
  if (!session) {
    return store.create({
      userId,
      ...(workspaceId === undefined ? {} : { workspaceId }),
      ...(surfaceId === undefined ? {} : { initialSurfaceId: surfaceId }),
    });
  }
  const touched = await store.touch(session.id);
  return surfaceId === undefined ? touched : store.attachSurface(session.id, surfaceId);
}

async function named(message: InboundMessage, store: SessionStore): Promise<Session | null> {
  if (message.sessionId === undefined) return null;
  const session = await store.get(message.sessionId);
  const own = session?.userId === message.userId && session.workspaceId === message.workspaceId;
  return own && session.state !== 'expired' ? session : null;
}

async function latest(
  store: Pick<SessionStore, 'page'>,
  userId: string,
  workspaceId: string | undefined,
  state: SessionState,
  surfaceId: string | undefined,
): Promise<Session | undefined> {
  const query = {
    userId,
    state,
    ...(workspaceId === undefined ? {} : { workspaceId }),
    ...(surfaceId === undefined ? {} : { surfaceId }),
  };
  let cursor: string | undefined;
  do {
    const page = await store.page(cursor === undefined ? query : { ...query, cursor });
    // A query cannot ask for "no workspace", so those of a workspace are left out here.
    const found = page.sessions.find((session) => session.workspaceId === workspaceId);
    if (found) return found;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return undefined;
}
