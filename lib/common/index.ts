export { type IdGenerator } from './ids.js';
export { type JsonObject, type JsonPrimitive, type JsonValue } from './json.js';
export {
  InvalidInputError,
  SessionsConfigurationError,
  SessionsError,
  StateSerializationError,
  CorruptRecordError,
  StoreUnavailableError,
  TooLargeError,
} from './sessions.error.js';
export { type TokenUsage, type TokenUsageInput } from './token-usage.js';
