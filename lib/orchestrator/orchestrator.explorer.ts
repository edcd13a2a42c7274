import { type FactoryProvider, Inject, type Provider, type Type } from '@nestjs/common';
import { type DiscoveryService, ModuleRef, ModulesContainer } from '@nestjs/core';
import { findProvider } from '../common/nest-providers.js';
import { type MessageTokens } from '../conversation/message-tokens.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { assertRoot } from './assert-root.js';
import { compileOrchestrator, type ResolveProvider } from './compile-orchestrator.js';
import { isOrchestratorDefinition } from './define-orchestrator.js';
import { definitionMessages } from './definition.messages.js';
import { anyMark, orchestratorOptions } from './orchestrator.decorators.js';
import { LISTED_BY_FEATURE, OrchestratorFeature } from './orchestrator-feature.js';
import { type OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { predicateName, type StepPredicateHandler, type StepPredicates } from '../orchestration/step-predicates.js';
import { RESERVED_PREFIX } from '../ledger/namespaces.js';
import { isStateModuleClass } from '../state/state-module.js';
import { type StateModules } from '../state/state-modules.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';

type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number];
type NestModule = ModulesContainer extends Map<string, infer Module> ? Module : never;
/** Returns the error for a class that is not a singleton. */
type Refusal = (name: string) => SessionsConfigurationError;
type Make = (type: Type<object>, host: ModuleRef, refusal: Refusal) => Promise<object>;

/**
 * Finds the application's orchestrators: providers with `@Orchestrator`, providers that are definitions, and those that
 * `forFeature` lists. A class that is listed only in `forFeature` is created in the module that imports the feature, so
 * it can inject the providers that this module can inject.
 */
export class OrchestratorExplorer {
  private readonly namespaces = new Map<string, unknown>();
  private orchestrators = new Set<unknown>();
  private ownModules = new Map<unknown, unknown>();
  private explored = false;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly modules: ModulesContainer,
    private readonly moduleRef: ModuleRef,
    private readonly registry: OrchestratorRegistry,
    private readonly agents: OrchestrationAgents,
    private readonly predicates: StepPredicates,
    private readonly stateModules: StateModules,
    private readonly tokens: MessageTokens,
  ) {
    this.removePlaceholders();
  }

  /** Registers everything that the modules of the application declare. Called once, when they are loaded. */
  async explore(): Promise<void> {
    this.orchestrators = this.exploreProviders();
    this.ownModules = this.providedStateModules();
    claimNamespace(this.namespaces, this.agents);
    for (const { feature, host } of this.features()) await this.add(feature, host, make);
    for (const plan of this.agents.all()) this.predicates.assertKnown(plan);
    await this.loadTokenCounter();
    this.agents.complete();
    this.explored = true;
  }

  /**
   * Registers a `forFeature` of a lazily loaded module, while that module is being created (FIX-71). Does nothing
   * before `explore`.
   * @param own the reference of the feature's module
   */
  async load(feature: OrchestratorFeature, own: ModuleRef): Promise<void> {
    if (!this.explored) return;
    this.removePlaceholders();
    const modules = [...this.modules.values()];
    const loaded = modules.find((module) => moduleRefOf(module) === own);
    const importing = modules.find(({ imports }) => loaded && imports.has(loaded));
    // A provider of the importing module may not exist yet: injecting it creates it.
    const find: Make = (type, host, refusal) =>
      importing?.providers.has(type) ? inject(type, host, refusal) : make(type, host, refusal);
    await this.add(feature, importing ? moduleRefOf(importing) : own, find);
    for (const plan of feature.plans) this.predicates.assertKnown(plan);
    await this.loadTokenCounter();
    await this.agents.publish();
  }

  /** @throws SessionsConfigurationError if an orchestrator counts tokens, and nothing can count them */
  private async loadTokenCounter(): Promise<void> {
    const counting = this.registry.counting();
    if (counting) await this.tokens.load(`The orchestrator ${counting.name}`);
  }

  private async add(feature: OrchestratorFeature, host: ModuleRef, instanceOf: Make): Promise<void> {
    feature.plans.forEach((plan) => this.agents.register(plan));
    feature.managers.forEach((manager) => claimNamespace(this.namespaces, manager));
    for (const orchestrator of feature.orchestrators) {
      if (isOrchestratorDefinition(orchestrator)) this.register(orchestrator);
      if (typeof orchestrator !== 'function' || this.orchestrators.has(orchestrator)) continue;
      this.orchestrators.add(orchestrator);
      const type = orchestrator as Type<object>;
      this.registerInstance(await instanceOf(type, host, requestScoped), type);
    }
    for (const type of feature.stateModules) {
      if (!this.ownModules.has(type)) this.ownModules.set(type, await instanceOf(type, host, requestScopedModule));
      this.stateModules.register(type, this.ownModules.get(type));
    }
  }

  /**
   * Removes the placeholders of classes that only `forFeature` lists, before another provider finds one. Those that a test has
   * replaced with `overrideProvider` stay, and are used (FIX-79).
   */
  private removePlaceholders(): void {
    for (const { providers } of this.modules.values()) {
      for (const [token, { instance }] of providers) if (instance === LISTED_BY_FEATURE) providers.delete(token);
    }
  }

  /** @returns the orchestrator classes that are providers of any kind */
  private exploreProviders(): Set<unknown> {
    const provided = new Set<unknown>();
    const orchestrators = new Map<Type<object>, InstanceWrapper>();
    for (const wrapper of this.discovery.getProviders()) {
      const instance: unknown = wrapper.instance;
      const [type, ...others] = [wrapper.token, wrapper.metatype].filter(isOrchestratorClass);
      if (type) {
        if (!wrapper.isDependencyTreeStatic()) throw requestScoped(type.name);
        [type, ...others].forEach((orchestrator) => provided.add(orchestrator));
        addOnce(orchestrators, orchestratorClassOf(instance, type), wrapper);
      } else if (isOrchestratorDefinition(instance)) {
        this.register(instance);
      } else {
        assertUnmarked(instance);
      }
      const predicate = [wrapper.token, wrapper.metatype]
        .filter(isClass)
        .map(predicateName)
        .find((name) => name !== undefined);
      if (predicate === undefined) continue;
      if (!wrapper.isDependencyTreeStatic()) throw requestScopedPredicate(predicate);
      this.predicates.register(predicate, instance as StepPredicateHandler);
    }
    for (const [type, { instance }] of orchestrators) this.registerInstance(instance as object | null, type);
    return provided;
  }

  /** Returns the state modules that are providers of any kind. */
  private providedStateModules(): Map<unknown, unknown> {
    const instances = new Map<unknown, unknown>();
    for (const wrapper of this.discovery.getProviders()) {
      for (const type of [wrapper.token, wrapper.metatype].filter(isStateModuleClass)) {
        if (!wrapper.isDependencyTreeStatic()) throw requestScopedModule(type.name);
        instances.set(type, wrapper.instance);
      }
    }
    return instances;
  }

  /** Returns each `forFeature` with the module that imports it. */
  private features(): { feature: OrchestratorFeature; host: ModuleRef }[] {
    const modules = [...this.modules.values()];
    return modules.flatMap((module) => {
      const feature: unknown = module.providers.get(OrchestratorFeature)?.instance;
      if (!(feature instanceof OrchestratorFeature)) return [];
      const host = modules.find(({ imports }) => imports.has(module)) ?? module;
      return [{ feature, host: moduleRefOf(host) }];
    });
  }

  private register(definition: OrchestratorDefinition): void {
    this.registry.register(definition);
    // Tests may have replaced the definition.
    const { plan } = this.registry.get(definition.name) ?? definition;
    if (plan) this.agents.register(plan);
    else this.agents.add(definition.name);
  }

  private registerInstance(instance: object | null, orchestrator: Type<object>): void {
    const resolve: ResolveProvider = (type, option) => this.resolve(orchestrator.name, type, option);
    this.register(compileOrchestrator(instance ?? {}, orchestrator, resolve));
  }

  private resolve<T>(orchestrator: string, type: abstract new (...args: never[]) => T, option: string): T {
    try {
      return this.moduleRef.get<T>(type, { strict: false });
    } catch (error) {
      throw new SessionsConfigurationError(definitionMessages.notAProvider(orchestrator, option, type.name), {
        cause: error,
      });
    }
  }
}

/**
 * Provides a feature, if the application has a root (DAY-04). In a lazily loaded module, its parts are registered before the load ends
 * (FIX-71).
 * @param exported the providers that the feature exports
 */
export function featureProvider(feature: OrchestratorFeature, exported: readonly FactoryProvider[]): Provider {
  return {
    provide: OrchestratorFeature,
    inject: [ModuleRef, ModulesContainer],
    useFactory: async (moduleRef: ModuleRef, modules: ModulesContainer) => {
      assertRoot(feature.call, exported, moduleRef, modules);
      const explorer: unknown = findProvider(moduleRef, OrchestratorExplorer);
      // While the application is being created, there may be no explorer yet.
      if (explorer instanceof OrchestratorExplorer) await explorer.load(feature, moduleRef);
      return feature;
    },
  };
}

/** @param owner a session manager, or the orchestration states */
function claimNamespace(taken: Map<string, unknown>, owner: { readonly namespace: string }): void {
  const { namespace } = owner;
  if (namespace.startsWith(RESERVED_PREFIX)) {
    throw new SessionsConfigurationError(definitionMessages.reservedNamespace(namespace, RESERVED_PREFIX));
  }
  if ((taken.get(namespace) ?? owner) !== owner) {
    throw new SessionsConfigurationError(definitionMessages.takenNamespace(namespace));
  }
  taken.set(namespace, owner);
}

/** Returns the class whose marks count: that of the instance, or the token if a test provides another object (FIX-79). */
function orchestratorClassOf(instance: unknown, token: Type<object>): Type<object> {
  const type: unknown = (instance as object | null | undefined)?.constructor;
  return isOrchestratorClass(type) ? type : token;
}

/** @throws SessionsConfigurationError if two modules provide the class, which would create it twice (FIX-79) */
function addOnce(found: Map<Type<object>, InstanceWrapper>, type: Type<object>, wrapper: InstanceWrapper): void {
  const first = found.get(type);
  // A test that replaces a class also replaces the placeholder of `forFeature`.
  if (first && isOfFeature(wrapper)) return;
  if (first && !isOfFeature(first) && first.instance !== wrapper.instance) {
    const [one, other] = [first, wrapper].map(({ host }) => host?.name ?? 'an unknown module');
    throw new SessionsConfigurationError(definitionMessages.providedTwice(type.name, one, other));
  }
  found.set(type, wrapper);
}

function isOfFeature({ host }: InstanceWrapper): boolean {
  return host?.providers.has(OrchestratorFeature) === true;
}

/** Stops the start if a class has methods with marks that no orchestrator would use (FIX-72). */
function assertUnmarked(instance: unknown): void {
  if (typeof instance !== 'object' || instance === null) return;
  const mark = anyMark((Object.getPrototypeOf(instance) as object | null) ?? {});
  if (!mark) return;
  const { name } = instance.constructor;
  throw new SessionsConfigurationError(definitionMessages.notAnOrchestrator(name, String(mark.method), mark.decorator));
}

function isOrchestratorClass(value: unknown): value is Type<object> {
  return isClass(value) && orchestratorOptions(value) !== undefined;
}

function isClass(value: unknown): value is Type<object> {
  return typeof value === 'function';
}

function moduleRefOf(module: NestModule): ModuleRef {
  return module.getProviderByKey<ModuleRef>(ModuleRef).instance;
}

/** Injects a provider of the module, which Nest creates first if necessary. */
async function inject(type: Type<object>, host: ModuleRef, refusal: Refusal): Promise<object> {
  class Holder {
    constructor(readonly instance: object) {}
  }
  Inject(type)(Holder, undefined, 0);
  const { instance } = (await make(Holder, host, () => refusal(type.name))) as Holder;
  return instance;
}

async function make(type: Type<object>, host: ModuleRef, refusal: Refusal): Promise<object> {
  try {
    return await host.create(type);
  } catch (error) {
    // Nest does not export the class of this error.
    if ((error as Error).constructor.name === 'RequestScopedCreateException') throw refusal(type.name);
    throw error;
  }
}

function requestScoped(name: string): SessionsConfigurationError {
  return new SessionsConfigurationError(definitionMessages.requestScoped(name));
}

function requestScopedModule(name: string): SessionsConfigurationError {
  return new SessionsConfigurationError(definitionMessages.requestScopedModule(name));
}

function requestScopedPredicate(name: string): SessionsConfigurationError {
  return new SessionsConfigurationError(definitionMessages.requestScopedPredicate(name));
}
