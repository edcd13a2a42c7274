import { HttpStatus, Logger, type Type } from '@nestjs/common';
import { checkInput } from '../common/check-input.js';
import { isFaultCode, statusOfCode } from '../common/error-status.js';
import { traceOf } from '../common/error-trace.js';
import { assertId } from '../common/ids.js';
import { type JsonValue, toJson, toJsonObject } from '../common/json.js';
import { hashed } from '../common/log-id.js';
import { InvalidInputError, SessionsError, StoreUnavailableError } from '../common/sessions.error.js';
import { type SessionsAdapter } from '../sessions.adapter.js';
import { type ConversationState } from './conversation-state.js';
import { lazily } from '../common/nest-providers.js';
import { type FlowState } from './flow-state.js';
import { namespaceOf } from './module-namespace.js';
import { resetAllSessions, resetSession, type StateClearance } from './reset-state.js';
import {
  STATE_MODULES,
  type StateDataPage,
  type StateDescription,
  type StateInspection,
  type StateModule,
  type StateModuleName,
} from './state-module.js';
import { InvalidCursorError } from './state-data.js';
import { type StateModules } from './state-modules.js';
import {
  type StateData,
  type StateOperation,
  type StateOperationResult,
  type StateStoreError,
  type StateStoreReport,
} from './state-report.js';
import { CompactStateRequest, DescribeStateRequest, ResetStateRequest, type StateRequest } from './state-request.js';
import { StateModuleDisabledError } from './state.errors.js';
import { type StateCleared } from './state.store.js';
import { type TaskStates } from './task-states.js';
import { type ToolState } from './tool-state.js';

/** What the store itself says is not for everybody. */
const UNAVAILABLE = 'The store is not available at the moment. Try again.';

/** What of an item of a module a description may show. */
export type StateRedactor = (item: JsonValue, of: { readonly store: string; readonly sessionId: string }) => JsonValue;

/** The modules of the package that are enabled. */
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

/** One thing of what a session has. */
export interface ExportedState {
  /** The module's name. */
  readonly store: string;
  readonly item: JsonValue;
}

interface ModuleCall {
  readonly operation: StateOperation;
  /** The module's name. */
  readonly store: string;
  readonly sessionId: string | undefined;
}

/** What a report says besides who it is of. */
type Findings = Partial<Omit<StateStoreReport, 'name' | 'enabled'>>;

/**
 * What is kept per session besides its checkpoints, by module: to use it, to look into it, to clear it and to make it shorter
 * (STA-10). Whom it is of is for the caller to check.
 *
 * Operations reject with InvalidInputError for a wrong request. What fails in one module is in the result's `errors`, with its code, and
 * the others are done all the same.
 */
export class SessionStateService {
  private readonly logger = new Logger(SessionStateService.name);

  /** @hidden */
  constructor(private readonly parts: SessionStateParts) {}

  /** @throws StateModuleDisabledError */
  get conversation(): ConversationState {
    return this.enabled('conversation', this.parts.builtIn.conversation);
  }

  /** @throws StateModuleDisabledError */
  get tools(): ToolState {
    return this.enabled('tools', this.parts.builtIn.tools);
  }

  /** @throws StateModuleDisabledError */
  get task(): TaskStates {
    return this.enabled('task', this.parts.builtIn.task);
  }

  /** @throws StateModuleDisabledError */
  get flow(): FlowState {
    return this.enabled('flow', this.parts.builtIn.flow);
  }

  /** A module of the application's own. @throws StateModuleDisabledError when no `forFeature` has registered it */
  module<T extends StateModule>(type: Type<T>): T {
    return this.parts.modules.instanceOf(type);
  }

  /** What a session has in the modules (STA-22); without a session: which modules there are. Writes nothing. */
  async describe(request: DescribeStateRequest = {}): Promise<StateOperationResult> {
    const asked = checkInput(DescribeStateRequest, request, 'request');
    const { sessionId, limit, after, includeData = false, stores } = asked;
    refuse(includeData && sessionId === undefined, 'includeData', 'needs a sessionId.');
    refuse(limit !== undefined && !includeData, 'limit', 'needs includeData.');
    refuse(after !== undefined && !includeData, 'after', 'needs includeData.');
    refuse(after !== undefined && stores?.length !== 1, 'after', 'needs exactly one name in stores.');
    const page = includeData ? { limit: limit ?? 50, ...(after === undefined ? {} : { after }) } : undefined;
    return this.operate('describe', asked, (name, module) =>
      sessionId === undefined ? {} : this.described(name, module, sessionId, page),
    );
  }

  /**
   * Clears modules of a session, or with `all: true` of every session (STA-23). Turns that run meanwhile go on; what they were to write to
   * a module that was cleared is left out when they settle.
   */
  async reset(request: ResetStateRequest): Promise<StateOperationResult> {
    const asked = checkInput(ResetStateRequest, request, 'request');
    const { sessionId, all = false, dryRun = false, stores } = asked;
    refuse(sessionId === undefined && !all, 'sessionId', 'is missing; all: true is for every session.');
    refuse(sessionId !== undefined && all, 'all', 'is for every session, and there is a sessionId.');
    if (dryRun) {
      return this.operate('reset', asked, async (name, module) => {
        if (sessionId === undefined) return {};
        const found = await this.described(name, module, sessionId, undefined);
        return { ...found, metadata: { ...found.metadata, wouldClear: found.exists ?? false } };
      });
    }
    const clear = lazily(() => this.clear(sessionId, stores));
    return this.operate('reset', asked, async (name) => {
      const own = this.parts.modules.ownModule(name);
      if (!own) {
        const { cleared, failure } = await clear();
        const found = clearedOf(name, cleared, sessionId !== undefined);
        if (failure === undefined) return found;
        return { ...found, error: this.toStoreError({ operation: 'reset', store: name, sessionId }, failure) };
      }
      const { cleared: done, metadata = {} } = await own.reset(sessionId ?? null);
      const exists = sessionId === undefined ? {} : { exists: done };
      return { ...exists, cleared: done, metadata: toJsonObject(metadata, 'metadata') };
    });
  }

  /** Makes a session's conversation shorter, and what else has a way to be shortened (STA-24). */
  async compact(request: CompactStateRequest): Promise<StateOperationResult> {
    const asked = checkInput(CompactStateRequest, request, 'request');
    const { sessionId, stores: _, metadata: __, dryRun = false, ...options } = asked;
    refuse(sessionId === undefined, 'sessionId', 'is missing.');
    return this.operate('compact', asked, async (_name, module) => {
      if (!module.compact) return { metadata: { compactable: false } };
      const found = await module.compact(sessionId!, { ...options, dryRun });
      return { ...countedIn(found), compacted: found.compacted };
    });
  }

  /**
   * All that a session has in the modules, module by module, read page by page. What tools keep as secret is left out.
   * @throws what a module throws, from the iteration
   */
  export(sessionId: string): AsyncIterable<ExportedState> {
    assertId(sessionId, 'sessionId');
    return this.exported(sessionId);
  }

  private async *exported(sessionId: string): AsyncGenerator<ExportedState, void> {
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

  /** Of the package's modules, those that are asked for: all at once. */
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

  /** Does something with each module that is asked for. */
  private async operate(
    operation: StateOperation,
    { sessionId, stores, metadata = {} }: StateRequest,
    visit: (name: string, module: StateInspection) => Findings | Promise<Findings>,
  ): Promise<StateOperationResult> {
    const { modules } = this.parts;
    const echo = toJsonObject(metadata, 'request.metadata');
    const enabled = modules.names();
    const asked = stores === undefined ? enabled : enabled.filter((name) => stores.includes(name));
    const reports = await Promise.all(asked.map((store) => this.report({ operation, store, sessionId }, visit)));
    return {
      operation,
      sessionId: sessionId ?? null,
      stores: reports,
      cleared: reports.flatMap(({ name, cleared }) => (cleared ? [name] : [])),
      compacted: reports.flatMap(({ name, compacted }) => (compacted ? [name] : [])),
      missing: [...new Set(stores)].filter((name) => !enabled.includes(name)),
      errors: reports.flatMap(({ error }) => error ?? []),
      metadata: echo,
    };
  }

  private async report(
    call: ModuleCall,
    visit: (name: string, module: StateInspection) => Findings | Promise<Findings>,
  ): Promise<StateStoreReport> {
    const { store: name } = call;
    const nothing = { name, enabled: true, cleared: false, compacted: false, metadata: {} };
    try {
      return { ...nothing, ...(await visit(name, this.parts.modules.get(name)!)) };
    } catch (error) {
      if (error instanceof InvalidCursorError) throw new InvalidInputError('request.after', error.problem);
      return { ...nothing, error: this.toStoreError(call, error) };
    }
  }

  /** Only refusals of the package's own say themselves what went wrong; of what failed, the log has the rest. */
  private toStoreError(call: ModuleCall, error: unknown): StateStoreError {
    const { store, operation } = call;
    if (!(error instanceof SessionsError) || isFaultCode(error.code)) {
      this.logFailure(call, error);
      return { store, code: 'STATE_MODULE_FAILED', message: `The module failed to ${operation}.` };
    }
    const { code, message, retryAfterMs } = error as SessionsError & { readonly retryAfterMs?: number };
    if (statusOfCode(code) >= HttpStatus.INTERNAL_SERVER_ERROR) this.logFailure(call, error.cause ?? error);
    return {
      store,
      code,
      message: error instanceof StoreUnavailableError ? UNAVAILABLE : message,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    };
  }

  private logFailure({ operation, store, sessionId }: ModuleCall, error: unknown): void {
    const what = sessionId === undefined ? '' : ` session ${hashed(sessionId)}`;
    this.logger.error(`The state module ${store} failed to ${operation}${what}.`, traceOf(error));
  }

  private enabled<T>(name: StateModuleName, state: T | undefined): T {
    if (!state) throw new StateModuleDisabledError(name, this.parts.modules.names());
    return state;
  }
}

/** What a hook has found, and nothing else that it may have given. */
function countedIn({ exists, itemCount, messageCount, metadata = {} }: Omit<StateDescription, 'data'>): Findings {
  return {
    exists,
    ...(itemCount === undefined ? {} : { itemCount }),
    ...(messageCount === undefined ? {} : { messageCount }),
    metadata: toJsonObject(metadata, 'metadata'),
  };
}

function clearedOf(name: string, { documents, messages }: StateCleared, ofSession: boolean): Findings {
  const gone = documents[namespaceOf(name)] ?? 0;
  const isConversation = name === 'conversation';
  const cleared = isConversation ? messages > 0 : gone > 0;
  return {
    ...(ofSession ? { exists: cleared, itemCount: 0, ...(isConversation ? { messageCount: 0 } : {}) } : {}),
    cleared,
    metadata: isConversation ? { messages } : { documents: gone },
  };
}

function refuse(wrong: boolean, key: string, problem: string): void {
  if (wrong) throw new InvalidInputError(`request.${key}`, problem);
}
