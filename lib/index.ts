/**
 * The module and all that needs no other package.
 * @module nestjs-agent-sessions
 */

// Each folder's index lists what it shows; nothing inside the package imports them.

// The module
export { type FeatureOptions, type FeatureRef } from './module/sessions.feature.js';
export { SessionsModule } from './module/sessions.module.js';
export {
  type ProcessRole,
  type SessionsModuleAsyncOptions,
  SessionsModuleOptions,
  type SessionsModuleStatics,
  type SessionsOptionsFactory,
} from './module/sessions.options.js';
export { SESSIONS_ADAPTER, TURN_QUEUE } from './common/sessions.tokens.js';

// Sessions, and all that is stored of one
export * from './session/index.js';
export * from './records/index.js';

// Turns, and the orchestrators that answer them
export * from './turn/index.js';
export * from './orchestrator/index.js';

// Steps and tools
export * from './module/create-orchestration.js';
export * from './orchestration/index.js';

// State of sessions, and its control plane
export * from './state/index.js';

// The conversation
export * from './conversation/index.js';

// Guards, decorators and errors of every transport; controllers of HTTP
export * from './transport/index.js';
export * from './http/index.js';

// What is stored, and stores
export * from './ledger/index.js';
export * from './store/memory/index.js';
export * from './maintenance/index.js';

// Everywhere
export * from './common/index.js';
