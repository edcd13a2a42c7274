/** The options passed by the application. */
export const SESSIONS_OPTIONS = Symbol('agent-sessions:options');
/** Creates the options, with `forRootAsync({ useClass })`. */
export const SESSIONS_OPTIONS_FACTORY = Symbol('agent-sessions:options-factory');
/** The validated options with their defaults. */
export const SESSIONS_SETTINGS = Symbol('agent-sessions:settings');
/** The application's connected store. */
export const SESSIONS_ADAPTER = Symbol('agent-sessions:adapter');
/** The same store with telemetry, for the module's own services. */
export const OBSERVED_ADAPTER = Symbol('agent-sessions:observed-adapter');
/** Whether this process accepts turns, runs them, or both. */
export const SESSIONS_ROLE = Symbol('agent-sessions:role');
/** The enabled controllers with their paths, for the log at start. */
export const SESSIONS_CONTROLLERS = Symbol('agent-sessions:controllers');
/** The enabled built-in state modules. */
export const BUILT_IN_STATE = Symbol('agent-sessions:built-in-state');
/** The TurnQueue, which notifies workers of turns. */
export const TURN_QUEUE = Symbol('agent-sessions:queue');
/** Returns the principal of a request. */
export const PRINCIPAL_RESOLVER = Symbol('agent-sessions:principal');
