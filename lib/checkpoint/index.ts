export {
  CheckpointConflictError,
  CheckpointNotFoundError,
  CheckpointPrunedError,
} from '../ledger/checkpoint.errors.js';
export { type Checkpoint, type NewCheckpoint, type StateSnapshot } from '../ledger/checkpoint.js';
export { type CheckpointPage, CheckpointStore, type KeepCheckpoints } from '../ledger/checkpoint.store.js';
