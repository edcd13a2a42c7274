import { Injectable, SetMetadata, type Type } from '@nestjs/common';
import { hasMethods } from '../common/has-methods.js';
import { type JsonObject, type JsonValue } from '../common/json.js';
import { type StateData } from './state-report.js';
import { type CompactStateRequest } from './state-request.js';

/** The modules that the package brings. */
export type StateModuleName = 'conversation' | 'tools' | 'task' | 'flow';

/** In the order in which they are always named. */
export const STATE_MODULES: readonly StateModuleName[] = ['conversation', 'tools', 'task', 'flow'];

/** Which part of what a module has of a session. */
export interface StateDataPage {
  /** The `next` of the page before; left out: from the beginning. */
  readonly after?: string;
  /** Items. */
  readonly limit: number;
}

/** What a module says of a session. */
export interface StateDescription {
  readonly exists: boolean;
  readonly itemCount?: number;
  readonly messageCount?: number;
  /** Messages that windows are cut from; of a module without windows absent. */
  readonly windowCount?: number;
  /** The page, where one was asked for. Each item passes the `redact` option before anybody sees it. */
  readonly data?: StateData;
  readonly metadata?: JsonObject;
}

/** What a module has cleared. */
export interface StateClearing {
  /** True only when something was there and is gone. */
  readonly cleared: boolean;
  readonly metadata?: JsonObject;
}

/** How a session's state is to be made shorter. */
export type StateCompactionOptions = Pick<
  CompactStateRequest,
  'strategy' | 'maxMessages' | 'maxTokens' | 'preserveRecent' | 'summaryMaxTokens'
> & {
  /** Says what would be done, and does nothing. */
  readonly dryRun: boolean;
};

/** What a module has made shorter. */
export interface StateCompaction {
  /** Whether it has something of the session. */
  readonly exists: boolean;
  /** True only when something was shortened. */
  readonly compacted: boolean;
  readonly itemCount?: number;
  readonly messageCount?: number;
  /** Messages that windows are cut from; of a module without windows absent. */
  readonly windowCount?: number;
  readonly metadata?: JsonObject;
}

/** A hook of a state module. */
export type StateHook = 'describe' | 'reset' | 'compact' | 'export';

/** One call of a hook. */
export interface StateHookCall {
  /** Aborted when the hook exceeds `state.hookTimeoutMs`: its result is dropped, and it must write nothing from then on. */
  readonly signal: AbortSignal;
}

/**
 * A part of what is kept per session that can be inspected, cleared and made shorter by itself (STA-07). What a hook throws is told as
 * that module's error; the others are done all the same. A hook that exceeds `state.hookTimeoutMs` fails with StateModuleTimeoutError.
 */
export interface StateModule {
  /** Of a session of which it has nothing as well: `{ exists: false }`. Writes nothing. */
  describe(sessionId: string, page?: StateDataPage, call?: StateHookCall): StateDescription | Promise<StateDescription>;
  /** Not called for a dry run. @param sessionId `null`: of every session */
  reset(sessionId: string | null, call?: StateHookCall): StateClearing | Promise<StateClearing>;
  /** Left out: there is nothing to make shorter. */
  compact?(
    sessionId: string,
    options: StateCompactionOptions,
    call?: StateHookCall,
  ): StateCompaction | Promise<StateCompaction>;
  /** Everything, in order, as JSON. Left out: nothing is exported of it. The time limit applies to each item. */
  export?(sessionId: string, call?: StateHookCall): AsyncIterable<JsonValue> | Iterable<JsonValue>;
}

/** What reads it only. */
export type StateInspection = Pick<StateModule, 'describe' | 'compact' | 'export'>;

const MODULE = Symbol('agent-sessions:state-module');

/** Makes a class a state module; register it with `SessionsModule.forFeature({ stateModules: [CartState] })`. */
export const SessionStateModule =
  (name: string): ClassDecorator =>
  (target) => {
    Injectable()(target);
    SetMetadata(MODULE, name)(target);
  };

/** What {@link SessionStateModule} was given. */
export function stateModuleName(target: object): string | undefined {
  return Reflect.getMetadata(MODULE, target) as string | undefined;
}

export function isStateModuleClass(value: unknown): value is Type<StateModule> {
  return typeof value === 'function' && stateModuleName(value) !== undefined;
}

export function isStateModule(value: unknown): value is StateModule {
  return hasMethods(value, ['describe', 'reset']);
}
