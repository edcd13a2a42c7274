export { type CompactionEvent } from './compaction-events.js';
export {
  type Compaction,
  type CompactionInfo,
  type CompactionOptions,
  type CompactionPolicy,
  type Summarizer,
  type Summary,
} from './compaction-policy.js';
export { type CompactionResult } from './compaction-run.js';
export {
  CompactionBusyError,
  CompactionFailedError,
  CompactionNotConfiguredError,
  type CompactionPhase,
} from './compaction.errors.js';
export { type HistoryWindow, type HistoryWindowOption } from './history-window.js';
export { type TokenCounter } from './token-counter.js';
export { type ConversationView, type WindowFunction, type WindowShape } from './window.js';
