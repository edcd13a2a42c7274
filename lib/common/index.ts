export { type IdGenerator } from './ids.js';
export { type JsonObject, type JsonPrimitive, type JsonValue } from './json.js';
export {
  InvalidInputError,
  SessionsConfigurationError,
  SessionsError,
  StateSerializationError,
  StoreUnavailableError,
  TooLargeError,
} from './sessions.error.js';
