import { type JsonValue } from '../common/json.js';
import { CONVERSATION_NAMESPACE } from './module-namespace.js';
import { moduleOf } from './module-namespace.js';
import { type TurnSettlement } from './turn.store.js';

/** The namespaces that a settlement adds something to; messages are of the conversation's. */
export function writtenNamespaces({ messages, stateChanges = [] }: TurnSettlement): string[] {
  const ofMessages = messages.length > 0 ? [CONVERSATION_NAMESPACE] : [];
  return [...new Set([...ofMessages, ...stateChanges.map(({ name }) => name.namespace)])];
}

/** A settlement without what it adds to some namespaces; its report says whose state was left as it is (STA-23). */
export function withoutWritesTo(settlement: TurnSettlement, namespaces: readonly string[]): TurnSettlement {
  const { messages, stateChanges = [], report } = settlement;
  const before = (report?.dropped ?? []) as readonly JsonValue[];
  return {
    ...settlement,
    report: { ...report, dropped: [...before, ...namespaces.map(moduleOf)] },
    messages: namespaces.includes(CONVERSATION_NAMESPACE) ? [] : messages,
    stateChanges: stateChanges.filter(({ name }) => !namespaces.includes(name.namespace)),
  };
}
