import { isPlainObject, type JsonValue } from '../common/json.js';
import { hasEffects } from '../orchestrator/turn-loop.js';
import { toolEntryIn } from '../state/tool-state.js';
import { TOOLS_NAMESPACE } from '../state/tool-entry.js';
import { type StateDocument, type StateEntry } from '../ledger/state.store.js';
import { type StoredStep } from '../ledger/turn-step.js';

/**
 * Returns the exported form of a document; `null` if its entry was deleted. For a tool entry, only the current value is
 * exported, because earlier values may have been secret.
 */
export function shownDocument(
  namespace: string,
  entry: StateEntry,
): { readonly document: StateDocument } | { readonly secret: true } | null {
  const { document } = entry;
  if (namespace !== TOOLS_NAMESPACE) return { document };
  const item = toolEntryIn(entry);
  if (!item) return null;
  const { value, secret } = item;
  return secret ? { secret } : { document: { ...document, value: { value, secret }, batches: [] } };
}

/**
 * Returns the exported form of a step. Tool writes of iterations and routes are omitted, because they may be secret.
 * Values that are not secret are in the documents.
 */
export function shownStep(step: StoredStep): StoredStep {
  if (!hasEffects(step) || !isPlainObject(step.value)) return step;
  const { writes, ...value } = step.value;
  return Array.isArray(writes) ? { ...step, value: { ...value, writes: writes.map(withoutChange) } } : step;
}

function withoutChange(write: JsonValue): JsonValue {
  if (!isPlainObject(write) || write.module !== 'tools') return write;
  const { change: _, ...named } = write;
  return named;
}
