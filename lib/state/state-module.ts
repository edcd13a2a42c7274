import { Injectable, SetMetadata, type Type } from '@nestjs/common';
import { type JsonObject, type JsonValue } from '../common/json.js';
import { missingMethod, type RequiredMethods } from '../common/required-methods.js';
import { type StateData } from './state-report.js';
import { type CompactStateRequest } from './state-request.js';

/** The built-in modules of the package. */
export type StateModuleName = 'conversation' | 'tools' | 'task' | 'flow';

/** The built-in modules in their fixed order. */
export const STATE_MODULES: readonly StateModuleName[] = ['conversation', 'tools', 'task', 'flow'];

/** Selects a page of the data of a module. */
export interface StateDataPage {
  /** The `next` value of the previous page. Default: starts with the first item. */
  readonly after?: string;
  /** Maximum number of items. */
  readonly limit: number;
}

/** The description of a session by a module. */
export interface StateDescription {
  readonly exists: boolean;
  readonly itemCount?: number;
  readonly messageCount?: number;
  /** Number of messages available to history windows. Absent in a module without windows. */
  readonly windowCount?: number;
  /** The requested page. Each item passes the `redact` option before it is returned. */
  readonly data?: StateData;
  readonly metadata?: JsonObject;
}

/** The result of a reset by a module. */
export interface StateClearing {
  /** True only if existing data was removed. */
  readonly cleared: boolean;
  readonly metadata?: JsonObject;
}

/** How to compact the state of a session. */
export type StateCompactionOptions = Pick<
  CompactStateRequest,
  'strategy' | 'maxMessages' | 'maxTokens' | 'preserveRecent' | 'summaryMaxTokens'
> & {
  /** Reports what the operation would do, without changes. */
  readonly dryRun: boolean;
};

/** The result of a compaction by a module. */
export interface StateCompaction {
  /** True if the module has data of the session. */
  readonly exists: boolean;
  /** True only if data was compacted. */
  readonly compacted: boolean;
  readonly itemCount?: number;
  readonly messageCount?: number;
  /** Number of messages available to history windows. Absent in a module without windows. */
  readonly windowCount?: number;
  readonly metadata?: JsonObject;
}

/** A hook of a state module. */
export type StateHook = 'describe' | 'reset' | 'compact' | 'export';

/** One call of a hook. */
export interface StateHookCall {
  /** Aborted when the hook exceeds `state.hookTimeoutMs`. Its result is discarded, and it must not write afterwards. */
  readonly signal: AbortSignal;
}

/**
 * A part of the session state that can be inspected, cleared and compacted separately (STA-07). An error of a hook is reported as the
 * error of its module; the other modules continue. A hook that exceeds `state.hookTimeoutMs` fails with StateModuleError.
 */
export interface StateModule {
  /** Describes a session. Returns `{ exists: false }` if the module has no data of it. Must not write. */
  describe(sessionId: string, page?: StateDataPage, call?: StateHookCall): StateDescription | Promise<StateDescription>;
  /** Clears the data of a session. Not called for a dry run. @param sessionId `null`: every session */
  reset(sessionId: string | null, call?: StateHookCall): StateClearing | Promise<StateClearing>;
  /** Compacts the data of a session. Default: the module cannot be compacted. */
  compact?(
    sessionId: string,
    options: StateCompactionOptions,
    call?: StateHookCall,
  ): StateCompaction | Promise<StateCompaction>;
  /** Exports all data in order, as JSON. Default: nothing is exported. The time limit applies to each item. */
  export?(sessionId: string, call?: StateHookCall): AsyncIterable<JsonValue> | Iterable<JsonValue>;
}

/** The read-only hooks, and `compact`. */
export type StateInspection = Pick<StateModule, 'describe' | 'compact' | 'export'>;

const MODULE = Symbol('agent-sessions:state-module');

/** Makes a class a state module; register it with `SessionsModule.forFeature({ stateModules: [CartState] })`. */
export const SessionStateModule =
  (name: string): ClassDecorator =>
  (target) => {
    Injectable()(target);
    SetMetadata(MODULE, name)(target);
  };

/** The options of {@link SessionStateModule}. */
export function stateModuleName(target: object): string | undefined {
  return Reflect.getMetadata(MODULE, target) as string | undefined;
}

export function isStateModuleClass(value: unknown): value is Type<StateModule> {
  return typeof value === 'function' && stateModuleName(value) !== undefined;
}

const MODULE_METHODS: RequiredMethods<StateModule> = { describe: true, reset: true };

/** Returns the first method that a state module lacks. */
export function missingOfStateModule(value: unknown): string | undefined {
  return missingMethod(value, MODULE_METHODS);
}

export function isStateModule(value: unknown): value is StateModule {
  return missingOfStateModule(value) === undefined;
}
