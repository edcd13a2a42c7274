export { AffinityResolver, defaultAffinityResolver, type InboundMessage, resolveSession } from './affinity-resolver.js';
export { createSessionStore, type SessionStoreConfig } from './create-session-store.js';
export { type SessionEvent, type SessionEventOf, SessionEvents, type SessionEventType } from './session-events.js';
export { type SessionPage, SessionStore, type SessionStoreSettings } from './session-store.service.js';
export { CreateSessionInput, MetadataOptions, RevokeOptions, SweepLimit } from './session.inputs.js';
