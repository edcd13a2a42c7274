import { inspect } from 'node:util';
import { type DynamicModule, Module, type ModuleMetadata, type Provider } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { assertKnownKeys } from '../common/check-options.js';
import { kindOf } from '../common/json.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { moduleMessages } from './module.messages.js';
import { sessionsControllers } from './sessions.controllers.js';
import { type FeatureOptions, type FeatureRef, featureProviders } from './sessions.feature.js';
import {
  PROCESS_ROLES,
  type SessionsModuleAsyncOptions,
  type SessionsModuleOptions,
  type SessionsModuleStatics,
  type SessionsOptionsFactory,
} from './sessions.options.js';
import { missingRoot } from '../orchestrator/assert-root.js';
import { SessionsStartModule, SessionsStopModule } from './sessions.start.js';
import { SHARED_TOKENS, sharedServices, sharedServicesOf } from './shared-services.js';
import { PUBLIC_TOKENS } from './public-tokens.js';
import { SESSIONS_PROVIDERS } from './sessions.providers.js';
import { SESSIONS_OPTIONS, SESSIONS_OPTIONS_FACTORY, SESSIONS_ROLE } from '../common/sessions.tokens.js';

@Module({})
class SessionsFeatureModule {}

/**
 * Durable sessions and strictly ordered turns for agent and chat back ends (NST-01).
 *
 * Import `forRoot` (or `forRootAsync`) once, and `forFeature` in each module that uses orchestrators. A module without
 * orchestrators can import `SessionsModule` itself to inject the services.
 */
@Module({ providers: sharedServices(noRoot), exports: [...SHARED_TOKENS] })
export class SessionsModule {
  /**
   * Provides the services and workers. All options have defaults; the default store is in this process's memory.
   * @throws SessionsConfigurationError at startup, with the option, its value and the allowed values
   */
  static forRoot(options: SessionsModuleOptions & SessionsModuleStatics = {}): DynamicModule {
    const { isGlobal, role, controllers, ...rest } = options;
    return assemble({ isGlobal, role, controllers }, [], [{ provide: SESSIONS_OPTIONS, useValue: rest }]);
  }

  /**
   * Works like `forRoot`, with options from a factory, a class, or a provider.
   * @throws SessionsConfigurationError unless exactly one of them is set, and for unknown keys
   */
  static forRootAsync(options: SessionsModuleAsyncOptions): DynamicModule {
    assertKnownKeys(options ?? {}, ASYNC_KEYS, 'SessionsModule.forRootAsync: ', moduleMessages.asyncOptionsCure());
    return assemble(options ?? {}, options?.imports, asyncOptions(options));
  }

  /**
   * Provides the services; registers orchestrators and provides a handle for each, see `@InjectOrchestrator`; registers step
   * plans of other agents; provides session managers, see `@InjectSessionManager`; and registers state modules. Pass a list of the
   * first three kinds, or one list per kind: `{ orchestrators, plans, sessionManagers, stateModules }`.
   *
   * A class may inject the providers of the importing module. Also list it in `providers` if another class injects it
   * or it has lifecycle hooks; that instance is then used.
   * @throws SessionsConfigurationError for values of any other kind
   */
  static forFeature(features: readonly FeatureRef[] | FeatureOptions): DynamicModule {
    const { own, exported } = featureProviders(features);
    return {
      module: SessionsFeatureModule,
      // Without a root, a test has replaced all handles. Otherwise the feature stops the start.
      providers: [...sharedServices(() => undefined), ...own, ...exported],
      exports: [...SHARED_TOKENS, ...exported.map(({ provide }) => provide)],
    };
  }
}

const ASYNC_KEYS = {
  useFactory: true,
  inject: true,
  useClass: true,
  useExisting: true,
  imports: true,
  isGlobal: true,
  role: true,
  controllers: true,
} as const;

function assemble(
  { isGlobal = false, role = 'both', controllers }: SessionsModuleStatics,
  imports: ModuleMetadata['imports'] = [],
  options: Provider[],
): DynamicModule {
  if (!PROCESS_ROLES.includes(role)) {
    throw new SessionsConfigurationError(moduleMessages.unknownRole(PROCESS_ROLES, inspect(role)));
  }
  const http = sessionsControllers(controllers);
  const root: DynamicModule & Required<Pick<DynamicModule, 'imports'>> = {
    module: SessionsModule,
    global: isGlobal,
    imports: [DiscoveryModule, SessionsStartModule, SessionsStopModule, ...imports, ...http.imports],
    controllers: http.controllers,
    providers: [...options, { provide: SESSIONS_ROLE, useValue: role }, ...SESSIONS_PROVIDERS, ...http.providers],
    exports: PUBLIC_TOKENS,
  };
  root.imports.push(sharedServicesOf(root));
  return root;
}

function noRoot(): never {
  throw missingRoot('The import of SessionsModule');
}

function asyncOptions(options: SessionsModuleAsyncOptions): Provider[] {
  const { useFactory, inject = [], useClass, useExisting } = options ?? {};
  const ways = [useFactory, useClass, useExisting].filter((way) => way !== undefined).length;
  if (ways !== 1) throw new SessionsConfigurationError(moduleMessages.notOneWay(ways));
  if (useFactory) return [{ provide: SESSIONS_OPTIONS, useFactory, inject }];
  const name = (useExisting ?? useClass)?.name ?? 'the factory';
  return [
    ...(useClass ? [{ provide: SESSIONS_OPTIONS_FACTORY, useClass }] : []),
    {
      provide: SESSIONS_OPTIONS,
      inject: [useExisting ?? SESSIONS_OPTIONS_FACTORY],
      useFactory: (factory: SessionsOptionsFactory | undefined) => optionsOf(factory, name),
    },
  ];
}

/** @throws SessionsConfigurationError if the provider of the factory resolved to something else */
function optionsOf(
  factory: SessionsOptionsFactory | undefined,
  name: string,
): SessionsModuleOptions | Promise<SessionsModuleOptions> {
  if (typeof factory?.createSessionsOptions === 'function') return factory.createSessionsOptions();
  throw new SessionsConfigurationError(moduleMessages.notAFactory(name, kindOf(factory)));
}
