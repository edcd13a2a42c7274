export { CheckpointConflictError, CheckpointNotFoundError, CheckpointPrunedError } from './checkpoint.errors.js';
export { type Checkpoint, type NewCheckpoint, type StateSnapshot } from './checkpoint.js';
export { type CheckpointPage, CheckpointStore, type KeepCheckpoints } from './checkpoint.store.js';
