import { type CanActivate, type OnModuleInit, type Type, UseInterceptors } from '@nestjs/common';
import { type ApplicationConfig, type HttpAdapterHost, type ModulesContainer } from '@nestjs/core';
import { methodAt, type MethodMark, methodNames } from '../common/method-mark.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { ANONYMOUS_SESSION, USED_SESSION } from './session.decorators.js';
import { SessionGuard } from './session.guard.js';
import { enterSessionOf, SessionInterceptor } from './session.interceptor.js';
import { sessionParameterOf } from './session-parameter.js';
import { ToolUseInterceptor } from './tool-use.interceptor.js';
import { REQUIRED_TOOL } from './tool.decorators.js';
import { ToolGuard } from './tool.guard.js';
import { transportMessages } from './transport.messages.js';

// Keys of Nest's metadata. The packages that define the last four are optional.
const GUARDS = '__guards__';
const INTERCEPTORS = '__interceptors__';
const ROUTE = 'path';
const SSE = '__sse__';
const MESSAGE_PATTERN = 'microservices:pattern';
const SUBSCRIBED_MESSAGE = 'websockets:message_mapping';
const GRAPHQL_TYPE = 'graphql:resolver_type';
const GRAPHQL_FIELDS = ['graphql:resolve_property', 'graphql:resolve_reference'];
/** The token of the options of GraphQLModule. */
const GRAPHQL_OPTIONS = 'GqlModuleOptions';

// Instances: Nest has already collected the classes that it creates.
const SESSION_INTERCEPTOR = new SessionInterceptor();
const GUARDED_INTERCEPTOR = new SessionInterceptor(true);

/** The option of GraphQLModule that is read. */
interface GraphqlOptions {
  readonly fieldResolverEnhancers?: readonly string[];
}

/**
 * Restores the marks of handlers whose method another decorator or a subclass replaced, and adds the interceptor of
 * `@UseSession()`, or for `@Sse()` the parameter. Stops the start if a marked handler lacks its guard (FIX-72), or a
 * handler that needs a session lacks `@UseSession()` (DAY-04). It is created before Nest registers the handlers, which is
 * when Nest reads their interceptors and parameters.
 */
export class HandlerExplorer implements OnModuleInit {
  private readonly guards: readonly { mark: MethodMark<unknown>; type: Type<CanActivate>; instance: CanActivate }[];

  constructor(
    private readonly modules: ModulesContainer,
    private readonly config: ApplicationConfig,
    private readonly host: HttpAdapterHost,
    sessionGuard: SessionGuard,
    toolGuard: ToolGuard,
  ) {
    this.guards = [
      { mark: USED_SESSION, type: SessionGuard, instance: sessionGuard },
      { mark: REQUIRED_TOOL, type: ToolGuard, instance: toolGuard },
    ];
    for (const type of this.classes()) {
      const prototype = type.prototype as object;
      for (const mark of [USED_SESSION, ANONYMOUS_SESSION, REQUIRED_TOOL]) mark.restore(prototype);
      for (const method of REQUIRED_TOOL.of(prototype).keys()) restoreInterceptor(prototype, method);
      this.addGuardedInterceptors(type);
      addSessionInterceptors(type);
    }
  }

  /** Checks the handlers, when global guards are known. @throws SessionsConfigurationError naming the handler */
  onModuleInit(): void {
    for (const type of this.classes()) {
      this.assertSessions(type);
      this.assertFields(type);
      assertNoStreamedTool(type);
      for (const { mark, ...guard } of this.guards) {
        const unguarded = this.handlersWith(mark, type).find((method) => !this.runs(guard, type, method));
        if (unguarded !== undefined) throw missingGuard(`${type.name}.${String(unguarded)}`, mark, guard.type);
      }
    }
  }

  /** Requires `@UseSession()` for parameters of the session and for tools, whose plan belongs to a session. */
  private assertSessions(type: Type<object>): void {
    if (USED_SESSION.isOn(type)) return;
    const prototype = type.prototype as object;
    const [sessions, tools] = [USED_SESSION.of(prototype), REQUIRED_TOOL.of(prototype)];
    for (const method of methodNames(prototype)) {
      const handler = methodAt(prototype, method);
      if (!handler || sessions.has(method) || !this.isServed(handler)) continue;
      const isTool = tools.has(method) || REQUIRED_TOOL.isOn(type);
      const use = isTool ? REQUIRED_TOOL.decorator : sessionParameterOf(type, method);
      if (use !== undefined) throw missingSession(`${type.name}.${String(method)}`, use);
    }
  }

  /**
   * Rejects messages of gateways and microservices for which no guard of the handler or its class runs. Whether a global
   * guard runs for them depends on the version of Nest and on `inheritAppConfig`.
   */
  private addGuardedInterceptors(type: Type<object>): void {
    const prototype = type.prototype as object;
    const marked = USED_SESSION.of(prototype);
    if (!USED_SESSION.isOn(type) && marked.size === 0) return;
    for (const method of methodNames(prototype)) {
      const handler = methodAt(prototype, method);
      if (!handler || !isMessage(handler) || !(USED_SESSION.isOn(type) || marked.has(method))) continue;
      const own = [...metadataList(GUARDS, type), ...metadataList(GUARDS, handler)];
      if (!own.some((each) => isOf(each, SessionGuard))) addSessionInterceptor(handler, GUARDED_INTERCEPTOR);
    }
  }

  /** Nest runs guards for fields below a query only if an option of GraphQLModule says so. */
  private assertFields(type: Type<object>): void {
    for (const { mark } of this.guards) {
      const [field] = fieldsWith(mark, type);
      if (field === undefined || this.guardsFields()) continue;
      const name = `${type.name}.${String(field)}`;
      throw new SessionsConfigurationError(transportMessages.fieldWithoutGuards(name, mark.decorator));
    }
  }

  private guardsFields(): boolean {
    return [...this.modules.values()].some(({ providers }) => {
      const options = providers.get(GRAPHQL_OPTIONS)?.instance as GraphqlOptions | undefined;
      return ['guards', 'interceptors'].every((each) => options?.fieldResolverEnhancers?.includes(each));
    });
  }

  /** Without an HTTP server, the process may be a worker that serves no routes and registers no global guards. */
  private isServed(handler: object): boolean {
    return this.host.httpAdapter ? isHandler(handler) : Reflect.hasMetadata(MESSAGE_PATTERN, handler);
  }

  /** Returns the classes of controllers, gateways and resolvers, among others. */
  private classes(): Set<Type<object>> {
    const modules = [...this.modules.values()];
    const wrappers = modules.flatMap(({ controllers, providers }) => [...controllers.values(), ...providers.values()]);
    const classes = wrappers.map(({ metatype }) => metatype as Type<object> | null).filter((type) => type?.prototype);
    return new Set(classes as Type<object>[]);
  }

  /** Returns the handlers that have the mark, or whose class has it. */
  private handlersWith(mark: MethodMark<unknown>, type: Type<object>): (string | symbol)[] {
    const prototype = type.prototype as object;
    const marked = mark.of(prototype);
    if (!mark.isOn(type) && marked.size === 0) return [];
    const fields = fieldsWith(mark, type);
    return methodNames(prototype).filter((method) => {
      const handler = methodAt(prototype, method);
      if (!handler) return false;
      if (!this.host.httpAdapter) return this.isServed(handler) && (mark.isOn(type) || marked.has(method));
      return marked.has(method) || fields.includes(method) || (mark.isOn(type) && this.isServed(handler));
    });
  }

  private runs(guard: { type: Type; instance: object }, type: Type<object>, method: string | symbol): boolean {
    const handler = methodAt(type.prototype as object, method);
    const bound: unknown[] = [
      ...this.config.getGlobalGuards(),
      ...this.config.getGlobalRequestGuards().map(({ metatype }) => metatype),
      ...metadataList(GUARDS, type),
      ...(handler ? metadataList(GUARDS, handler) : []),
    ];
    return bound.some((each) => each === guard.instance || isOf(each, guard.type));
  }
}

/**
 * Returns the fields below a query that have the mark. In a class with queries, a mark on the class belongs to these, and
 * the fields use their session.
 */
function fieldsWith(mark: MethodMark<unknown>, type: Type<object>): (string | symbol)[] {
  const prototype = type.prototype as object;
  const methods = methodNames(prototype).flatMap((name) => {
    const method = methodAt(prototype, name);
    return method ? [{ name, method }] : [];
  });
  const marked = mark.of(prototype);
  const allMarked = mark.isOn(type) && !methods.some(({ method }) => isHandler(method));
  return methods
    .filter(({ name, method }) => hasOneOf(GRAPHQL_FIELDS, method) && (allMarked || marked.has(name)))
    .map(({ name }) => name);
}

/** Adds the interceptor of `@RequireTool()` to a method that has lost it. */
function restoreInterceptor(prototype: object, method: string | symbol): void {
  const handler = methodAt(prototype, method);
  if (!handler || metadataList(INTERCEPTORS, handler).some((each) => isOf(each, ToolUseInterceptor))) return;
  // An instance: Nest has already collected the classes that it creates for this module.
  UseInterceptors(new ToolUseInterceptor())(prototype, method, { value: handler });
}

/** Rejects `@RequireTool()` on streams: its interceptor would make Nest send 200 before the use is admitted. */
function assertNoStreamedTool(type: Type<object>): void {
  const prototype = type.prototype as object;
  const required = REQUIRED_TOOL.isOn(type) ? methodNames(prototype) : REQUIRED_TOOL.of(prototype).keys();
  for (const method of required) {
    const handler = methodAt(prototype, method);
    if (!handler || !isStream(handler)) continue;
    const name = `${type.name}.${String(method)}`;
    throw new SessionsConfigurationError(transportMessages.streamedTool(name, REQUIRED_TOOL.decorator));
  }
}

/** Makes handlers run for the session of their request. An interceptor of the class would apply to its streams, too. */
function addSessionInterceptors(type: Type<object>): void {
  const prototype = type.prototype as object;
  const isIntercepted = metadataList(INTERCEPTORS, type).length > 0;
  if (isIntercepted && (USED_SESSION.isOn(type) || REQUIRED_TOOL.isOn(type))) addSessionInterceptor(type);
  for (const method of USED_SESSION.isOn(type) ? methodNames(prototype) : USED_SESSION.of(prototype).keys()) {
    const handler = methodAt(prototype, method);
    if (!handler) continue;
    const isPlainStream = isStream(handler) && !isIntercepted && metadataList(INTERCEPTORS, handler).length === 0;
    if (isPlainStream) enterSessionOf(prototype, method);
    else addSessionInterceptor(handler);
  }
}

/** Adds the interceptor of `@UseSession()` before those of the class or method: `ToolUseInterceptor` writes to the session. */
function addSessionInterceptor(target: object, interceptor = SESSION_INTERCEPTOR): void {
  const others = metadataList(INTERCEPTORS, target);
  if (others.some((each) => isOf(each, SessionInterceptor))) return;
  Reflect.defineMetadata(INTERCEPTORS, [interceptor, ...others], target);
}

function isHandler(method: object): boolean {
  if (hasOneOf([ROUTE], method) || isMessage(method)) return true;
  // Guards do not run for the other fields by default.
  return ['Query', 'Mutation', 'Subscription'].includes(Reflect.getMetadata(GRAPHQL_TYPE, method) as string);
}

/** Returns whether a method is an `@Sse()` handler. */
function isStream(method: object): boolean {
  return hasOneOf([SSE], method);
}

/** Returns whether a method handles messages of a gateway or a microservice. */
function isMessage(method: object): boolean {
  return hasOneOf([MESSAGE_PATTERN, SUBSCRIBED_MESSAGE], method);
}

function hasOneOf(keys: readonly string[], method: object): boolean {
  return keys.some((key) => Reflect.hasMetadata(key, method));
}

function metadataList(key: string, target: object): readonly unknown[] {
  return (Reflect.getMetadata(key, target) as readonly unknown[] | undefined) ?? [];
}

/** Returns whether a class is the type or extends it, or whether an object is an instance of it. */
function isOf(value: unknown, type: Type): boolean {
  return value === type || value instanceof type || (typeof value === 'function' && value.prototype instanceof type);
}

function missingSession(handler: string, decorator: string): SessionsConfigurationError {
  return new SessionsConfigurationError(transportMessages.noSessionMark(handler, decorator));
}

function missingGuard(handler: string, { decorator }: MethodMark<unknown>, guard: Type): SessionsConfigurationError {
  return new SessionsConfigurationError(transportMessages.missingGuard(handler, decorator, guard.name));
}
