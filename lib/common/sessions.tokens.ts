/** The options as the application gave them. */
export const SESSIONS_OPTIONS = Symbol('agent-sessions:options');
/** What makes the options, with `forRootAsync({ useClass })`. */
export const SESSIONS_OPTIONS_FACTORY = Symbol('agent-sessions:options-factory');
/** The validated options with their defaults. */
export const SESSIONS_SETTINGS = Symbol('agent-sessions:settings');
/** The application's store, connected. */
export const SESSIONS_ADAPTER = Symbol('agent-sessions:adapter');
/** The same store as the module's own parts use it: what they ask of it is told to telemetry. */
export const OBSERVED_ADAPTER = Symbol('agent-sessions:observed-adapter');
/** What this process does with turns. */
export const SESSIONS_ROLE = Symbol('agent-sessions:role');
/** The package's state modules that are enabled. */
export const BUILT_IN_STATE = Symbol('agent-sessions:built-in-state');
/** The TurnQueue that rings for turns. */
export const TURN_QUEUE = Symbol('agent-sessions:queue');
/** Finds out whom a request speaks for. */
export const PRINCIPAL_RESOLVER = Symbol('agent-sessions:principal');
