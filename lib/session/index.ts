export { AffinityResolver, defaultAffinityResolver, type InboundMessage, resolveSession } from './affinity-resolver.js';
export { createSessionStore, type SessionStoreConfig } from './create-session-store.js';
export { type SessionEvent, type SessionEventOf, SessionEvents, type SessionEventType } from './session-events.js';
export { type SessionPage, SessionStore, type SessionStoreSettings } from './session-store.service.js';
export { compareSessions, decodeCursor, encodeCursor, type SessionCursor } from '../ledger/session.cursor.js';
export {
  SessionConflictError,
  SessionNotFoundError,
  SessionStateError,
  SurfaceConflictError,
  SurfaceLimitError,
} from '../ledger/session.errors.js';
export { CreateSessionInput, MetadataOptions, RevokeOptions, SessionQuery, SweepLimit } from './session.inputs.js';
export {
  type NewSession,
  type Session,
  type SessionChange,
  type SessionLifetime,
  type SessionState,
  type SurfaceChange,
  type SurfaceLimitPolicy,
  type SurfacePolicy,
  type SurfaceRules,
} from '../ledger/session.js';
export * as sessionLifecycle from '../ledger/session.lifecycle.js';
export {
  type AtomicSessionStoreAdapter,
  type CreatedSession,
  type SessionStoreAdapter,
} from '../ledger/session.store.js';
