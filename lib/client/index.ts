/**
 * A client of the control plane that needs nothing but `fetch`.
 * @module nestjs-agent-sessions/client
 */

export { type JsonObject, type JsonPrimitive, type JsonValue } from '../common/json.js';
export {
  type StateData,
  type StateOperation,
  type StateOperationResult,
  type StateStoreError,
  type StateStoreReport,
} from '../state/state-report.js';
export { type CompactionStrategy } from '../conversation/compaction-request.js';
export {
  type CompactStateRequest,
  type DescribeStateRequest,
  type ResetStateRequest,
  type StateRequest,
} from '../state/state-request.js';
export { StateClientError } from './state-client.error.js';
export {
  type Fetch,
  type FetchAnswer,
  type FetchRequest,
  type StateCallOptions,
  type StateClient,
  stateClient,
  type StateClientOptions,
} from './state-client.js';
