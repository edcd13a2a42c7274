import { type Type } from '@nestjs/common';
import { checkInput } from '../common/check-input.js';
import { assertId } from '../common/ids.js';
import { type JsonValue, toJson, toJsonObject } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type ConversationState } from './conversation-state.js';
import { lazily } from '../common/nest-providers.js';
import { type FlowState } from './flow-state.js';
import { namespaceOf } from '../ledger/namespaces.js';
import { resetAllSessions, resetSession, type StateClearance } from './reset-state.js';
import {
  STATE_MODULES,
  type StateDataPage,
  type StateDescription,
  type StateInspection,
  type StateModule,
  type StateModuleName,
} from './state-module.js';
import { type StateModules } from './state-modules.js';
import { type Findings, StateOperations } from './state-operations.js';
import { type StateData, type StateOperationResult, type StateStoreError } from './state-report.js';
import { CompactStateRequest, DescribeStateRequest, ResetStateRequest } from './state-request.js';
import { conversationNotReset, moduleDisabled } from './state.errors.js';
import { type StateCleared } from '../ledger/state.store.js';
import { type TaskStates } from './task-states.js';
import { type ToolState } from './tool-state.js';

/** Returns what a description may show of an item of a module. */
export type StateRedactor = (item: JsonValue, of: { readonly store: string; readonly sessionId: string }) => JsonValue;

/** The enabled built-in modules. */
export interface BuiltInState {
  readonly conversation?: ConversationState;
  readonly tools?: ToolState;
  readonly task?: TaskStates;
  readonly flow?: FlowState;
}

export interface SessionStateParts {
  readonly stores: Pick<SessionsAdapter, 'state' | 'conversations' | 'turns'>;
  readonly modules: StateModules;
  readonly builtIn: BuiltInState;
  readonly redact: StateRedactor | undefined;
}

/**
 * Gives access to the state modules of a session: use, inspect, clear and compact their data (STA-10). Callers must check the owner of
 * the session.
 *
 * Operations reject with InvalidInputError for an invalid request. The failure of a module is reported with its code in `errors` of
 * the result; the other modules continue.
 */
export class SessionStateService {
  private readonly operations: StateOperations;

  /** @hidden */
  constructor(private readonly parts: SessionStateParts) {
    this.operations = new StateOperations(parts.modules);
  }

  /** @throws StateModuleError (`STATE_MODULE_DISABLED`) */
  get conversation(): ConversationState {
    return this.enabled('conversation', this.parts.builtIn.conversation);
  }

  /** @throws StateModuleError (`STATE_MODULE_DISABLED`) */
  get tools(): ToolState {
    return this.enabled('tools', this.parts.builtIn.tools);
  }

  /** @throws StateModuleError (`STATE_MODULE_DISABLED`) */
  get task(): TaskStates {
    return this.enabled('task', this.parts.builtIn.task);
  }

  /** @throws StateModuleError (`STATE_MODULE_DISABLED`) */
  get flow(): FlowState {
    return this.enabled('flow', this.parts.builtIn.flow);
  }

  /** Returns a custom module. @throws StateModuleError (`STATE_MODULE_DISABLED`) if it is not registered with `forFeature` */
  module<T extends StateModule>(type: Type<T>): T {
    return this.parts.modules.instanceOf(type);
  }

  /** Describes the data of a session in the modules (STA-22). Without a session, lists the modules. Writes nothing. */
  async describe(request: DescribeStateRequest = {}): Promise<StateOperationResult> {
    const asked = checkInput(DescribeStateRequest, request, 'request');
    const { sessionId, limit, after, includeData = false, stores } = asked;
    refuse(includeData && sessionId === undefined, 'includeData', 'requires sessionId. Add it, or remove includeData.');
    refuse(limit !== undefined && !includeData, 'limit', 'requires includeData: true.');
    refuse(after !== undefined && !includeData, 'after', 'requires includeData: true.');
    refuse(after !== undefined && stores?.length !== 1, 'after', 'requires exactly one name in stores.');
    const page = includeData ? { limit: limit ?? 50, ...(after === undefined ? {} : { after }) } : undefined;
    return this.operations.run('describe', asked, (name, module) =>
      sessionId === undefined ? {} : this.described(name, module, sessionId, page),
    );
  }

  /**
   * Clears modules of a session, or of every session with `all: true` (STA-23). Running turns continue; their writes to cleared modules
   * are omitted when they settle.
   *
   * If the module `conversation` is not enabled, an existing log is kept, and the errors of the result include a
   * StateModuleError (`CONVERSATION_NOT_RESET`, FIX-46).
   */
  async reset(request: ResetStateRequest): Promise<StateOperationResult> {
    const asked = checkInput(ResetStateRequest, request, 'request');
    const { sessionId, all = false, dryRun = false } = asked;
    refuse(sessionId === undefined && !all, 'sessionId', 'is missing. Add it, or use all: true for every session.');
    refuse(sessionId !== undefined && all, 'all', 'must not be combined with sessionId.');
    const result = await (dryRun ? this.describeReset(asked) : this.runReset(asked));
    const remaining = await this.remainingLogError(asked);
    return remaining ? { ...result, errors: [...result.errors, remaining] } : result;
  }

  private describeReset(asked: ResetStateRequest): Promise<StateOperationResult> {
    const { sessionId } = asked;
    return this.operations.run('reset', asked, async (name, module) => {
      if (sessionId === undefined) return {};
      const found = await this.described(name, module, sessionId, undefined);
      return { ...found, metadata: { ...found.metadata, wouldClear: found.exists ?? false } };
    });
  }

  private runReset(asked: ResetStateRequest): Promise<StateOperationResult> {
    const { sessionId, stores } = asked;
    const clear = lazily(() => this.clear(sessionId, stores));
    return this.operations.run('reset', asked, async (name) => {
      const own = this.parts.modules.ownModule(name);
      if (!own) {
        const { cleared, failure } = await clear();
        const found = clearedOf(name, cleared, sessionId !== undefined);
        if (failure === undefined) return found;
        return {
          ...found,
          error: this.operations.toStoreError({ operation: 'reset', store: name, sessionId }, failure),
        };
      }
      const { cleared: done, metadata = {} } = await own.reset(sessionId ?? null);
      const exists = sessionId === undefined ? {} : { exists: done };
      return { ...exists, cleared: done, metadata: toJsonObject(metadata, 'metadata') };
    });
  }

  /** Compacts the conversation of a session, and other modules that support compaction (STA-24). */
  async compact(request: CompactStateRequest): Promise<StateOperationResult> {
    const asked = checkInput(CompactStateRequest, request, 'request');
    const { sessionId, stores: _, metadata: __, dryRun = false, ...options } = asked;
    refuse(sessionId === undefined, 'sessionId', 'is missing. Add the id of the session.');
    return this.operations.run('compact', asked, async (_name, module) => {
      if (!module.compact) return { metadata: { compactable: false } };
      const found = await module.compact(sessionId!, { ...options, dryRun });
      return { ...countedIn(found), compacted: found.compacted };
    });
  }

  /**
   * Exports the data of a session module by module, reading page by page. `store` is the name of the module. Secret
   * values of tools are omitted.
   * @throws the errors of modules, from the iteration
   */
  export(sessionId: string): AsyncIterable<{ readonly store: string; readonly item: JsonValue }> {
    assertId(sessionId, 'sessionId');
    return this.exported(sessionId);
  }

  private async *exported(sessionId: string): AsyncGenerator<{ store: string; item: JsonValue }, void> {
    const { modules } = this.parts;
    for (const store of modules.names()) {
      for await (const item of modules.get(store)?.export?.(sessionId) ?? []) {
        yield { store, item: toJson(item, store) };
      }
    }
  }

  private async described(
    name: string,
    module: StateInspection,
    sessionId: string,
    page: StateDataPage | undefined,
  ): Promise<Findings> {
    const found = await module.describe(sessionId, page);
    const data = page && found.data && this.redacted(name, sessionId, found.data);
    return { ...countedIn(found), ...(data ? { data } : {}) };
  }

  private redacted(store: string, sessionId: string, { items, next }: StateData): StateData {
    const { redact } = this.parts;
    const shown = items.map((item) => {
      const copy = toJson(item, store);
      return redact ? toJson(redact(copy, { store, sessionId }), store) : copy;
    });
    return { items: shown, ...(next === undefined ? {} : { next }) };
  }

  /** Returns the error of an incomplete reset: the conversation log exists, but its module is not enabled. */
  private async remainingLogError({ sessionId, stores }: ResetStateRequest): Promise<StateStoreError | null> {
    const store = 'conversation';
    if (this.parts.builtIn.conversation || stores?.includes(store) === false) return null;
    try {
      const { conversations } = this.parts.stores;
      const found = await (sessionId === undefined
        ? conversations.sessions('', 1)
        : conversations.window(sessionId, 1));
      if (found.length === 0) return null;
      throw conversationNotReset();
    } catch (error) {
      return this.operations.toStoreError({ operation: 'reset', store, sessionId }, error);
    }
  }

  /** Clears the requested built-in modules at once. */
  private async clear(
    sessionId: string | undefined,
    stores: readonly string[] = this.parts.modules.names(),
  ): Promise<StateClearance> {
    const { stores: ports, builtIn } = this.parts;
    const names = STATE_MODULES.filter((name) => builtIn[name] && stores.includes(name));
    if (names.length === 0) return { cleared: { documents: {}, messages: 0 } };
    if (sessionId === undefined) return resetAllSessions(ports, names);
    return { cleared: await resetSession(ports, sessionId, names) };
  }

  private enabled<T>(name: StateModuleName, state: T | undefined): T {
    if (!state) throw moduleDisabled(name, this.parts.modules.names());
    return state;
  }
}

/** Returns only the known fields of a hook's result. */
function countedIn({
  exists,
  itemCount,
  messageCount,
  windowCount,
  metadata = {},
}: Omit<StateDescription, 'data'>): Findings {
  return {
    exists,
    ...(itemCount === undefined ? {} : { itemCount }),
    ...(messageCount === undefined ? {} : { messageCount }),
    ...(windowCount === undefined ? {} : { windowCount }),
    metadata: toJsonObject(metadata, 'metadata'),
  };
}

function clearedOf(name: string, { documents, messages }: StateCleared, ofSession: boolean): Findings {
  const deleted = documents[namespaceOf(name)] ?? 0;
  const isConversation = name === 'conversation';
  const cleared = isConversation ? messages > 0 : deleted > 0;
  return {
    ...(ofSession
      ? { exists: cleared, itemCount: 0, ...(isConversation ? { messageCount: 0, windowCount: 0 } : {}) }
      : {}),
    cleared,
    metadata: isConversation ? { messages } : { documents: deleted },
  };
}

function refuse(wrong: boolean, key: string, problem: string): void {
  if (wrong) throw new InvalidInputError(`request.${key}`, problem);
}
