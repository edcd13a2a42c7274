import { type JsonValue } from '../common/json.js';
import { type ConversationCompaction } from '../conversation/conversation-compaction.service.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { ConversationModule } from './conversation-module.js';
import { ConversationState } from './conversation-state.js';
import { DocumentModule } from './document-module.js';
import { FLOW_NAMESPACE } from './flow-change.js';
import { flowIn, FlowState } from './flow-state.js';
import { resetSession } from './reset-state.js';
import { type BuiltInState } from './session-state.service.js';
import { type StateInspection, type StateModuleName } from './state-module.js';
import { type StateSettings } from './state.settings.js';
import { TASK_NAMESPACE } from './task-change.js';
import { taskIn, TaskStates } from './task-states.js';
import { TOOLS_NAMESPACE } from './tool-entry.js';
import { toolEntryIn, ToolState } from './tool-state.js';

type Stores = Pick<SessionsAdapter, 'state' | 'conversations' | 'turns'>;

/** Creates the enabled built-in modules for use by the application. */
export function builtInState(stores: Stores, { modules, maxBytes }: StateSettings): BuiltInState {
  const { state, conversations } = stores;
  const clear = async (sessionId: string): Promise<boolean> =>
    (await resetSession(stores, sessionId, ['conversation'])).messages > 0;
  const all = {
    conversation: new ConversationState(conversations, clear),
    tools: new ToolState(state, maxBytes),
    task: new TaskStates(state, maxBytes),
    flow: new FlowState(state, maxBytes),
  };
  return Object.fromEntries(Object.entries(all).filter(([name]) => modules.includes(name as StateModuleName)));
}

/** Creates the same modules for the control plane, in their order. */
export function builtInModules(
  stores: Stores,
  { conversation, tools, task, flow }: BuiltInState,
  compaction: ConversationCompaction,
): ReadonlyMap<StateModuleName, StateInspection> {
  const store = stores.state;
  const modules = new Map<StateModuleName, StateInspection>();
  if (conversation) modules.set('conversation', new ConversationModule(stores.conversations, conversation, compaction));
  if (tools) {
    modules.set(
      'tools',
      new DocumentModule({
        store,
        items: { namespace: TOOLS_NAMESPACE },
        show: (_, entry) => withoutSecret(toolEntryIn(entry)),
        exported: (_, entry) => [toolEntryIn(entry)].flatMap((item) => (item && !item.secret ? asJson(item) : [])),
      }),
    );
  }
  if (task) {
    modules.set(
      'task',
      new DocumentModule({
        store,
        items: { namespace: TASK_NAMESPACE, scope: '' },
        show: (sessionId, entry) => asJson(taskIn(sessionId, entry)),
        exported: (sessionId, entry) => [taskIn(sessionId, entry)].flatMap((item) => (item ? asJson(item) : [])),
      }),
    );
  }
  if (flow) {
    modules.set(
      'flow',
      new DocumentModule({
        store,
        items: { namespace: FLOW_NAMESPACE, scope: '' },
        show: (_, entry) => asJson(flowIn(entry)),
        exported: async function* (sessionId, { key }) {
          for (const version of await flow.versions(sessionId, key)) yield asJson(version);
        },
      }),
    );
  }
  return modules;
}

/** Returns the entry without its value if it is secret. */
function withoutSecret(item: ReturnType<typeof toolEntryIn>): JsonValue {
  if (!item?.secret) return asJson(item);
  const { value: _, ...known } = item;
  return asJson(known);
}

function asJson(item: object | null): JsonValue {
  return item as unknown as JsonValue;
}
