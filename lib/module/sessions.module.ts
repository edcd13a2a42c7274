import { inspect } from 'node:util';
import { type DynamicModule, Module, type ModuleMetadata, type Provider } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { sessionsControllers } from './sessions.controllers.js';
import { type FeatureOptions, type FeatureRef, featureProviders } from './sessions.feature.js';
import {
  PROCESS_ROLES,
  type SessionsModuleAsyncOptions,
  type SessionsModuleOptions,
  type SessionsModuleStatics,
  type SessionsOptionsFactory,
} from './sessions.options.js';
import { PUBLIC_TOKENS, SESSIONS_PROVIDERS } from './sessions.providers.js';
import { SESSIONS_OPTIONS, SESSIONS_OPTIONS_FACTORY, SESSIONS_ROLE } from '../common/sessions.tokens.js';

@Module({})
class SessionsFeatureModule {}

/**
 * Durable sessions and strictly ordered turns for agent and chat back ends (NST-01).
 *
 * Import `forRoot` (or `forRootAsync`) once, and `forFeature` wherever orchestrators are used.
 */
@Module({})
export class SessionsModule {
  /**
   * The services and their workers. Everything has a default: without options they live in this process's memory.
   * @throws SessionsConfigurationError at start-up, naming the option, its value and what is allowed
   */
  static forRoot(options: SessionsModuleOptions & SessionsModuleStatics = {}): DynamicModule {
    const { isGlobal, role, controllers, ...rest } = options;
    return assemble({ isGlobal, role, controllers }, [], [{ provide: SESSIONS_OPTIONS, useValue: rest }]);
  }

  /**
   * As `forRoot`, with options from a factory, a class, or a provider.
   * @throws SessionsConfigurationError unless exactly one of them is given
   */
  static forRootAsync(options: SessionsModuleAsyncOptions): DynamicModule {
    return assemble(options ?? {}, options?.imports, asyncOptions(options));
  }

  /**
   * Registers orchestrators and provides a handle for each, see `@InjectOrchestrator`; registers step plans of other agents;
   * provides session managers, see `@InjectSessionManager`; and registers state modules. A list of the first three, or each of its kind:
   * `{ orchestrators, plans, sessionManagers, stateModules }`.
   *
   * A class may inject what the importing module's providers may. List it in `providers` as well when something else
   * injects it or it has lifecycle hooks; that instance is then used.
   * @throws SessionsConfigurationError for something that is none of these
   */
  static forFeature(features: readonly FeatureRef[] | FeatureOptions): DynamicModule {
    const { own, exported } = featureProviders(features);
    return {
      module: SessionsFeatureModule,
      providers: [...own, ...exported],
      exports: exported.map(({ provide }) => provide),
    };
  }
}

function assemble(
  { isGlobal = false, role = 'both', controllers }: SessionsModuleStatics,
  imports: ModuleMetadata['imports'] = [],
  options: Provider[],
): DynamicModule {
  if (!PROCESS_ROLES.includes(role)) {
    throw new SessionsConfigurationError(
      `SessionsModule: The option role must be one of ${PROCESS_ROLES.join(', ')}. It is ${inspect(role)}.`,
    );
  }
  const http = sessionsControllers(controllers);
  return {
    module: SessionsModule,
    global: isGlobal,
    imports: [DiscoveryModule, ...imports, ...http.imports],
    controllers: http.controllers,
    providers: [...options, { provide: SESSIONS_ROLE, useValue: role }, ...SESSIONS_PROVIDERS, ...http.providers],
    exports: PUBLIC_TOKENS,
  };
}

function asyncOptions(options: SessionsModuleAsyncOptions): Provider[] {
  const { useFactory, inject = [], useClass, useExisting } = options ?? {};
  const ways = [useFactory, useClass, useExisting].filter((way) => way !== undefined).length;
  if (ways !== 1) {
    throw new SessionsConfigurationError(
      `SessionsModule.forRootAsync has ${ways === 0 ? 'none' : 'several'} of useFactory, useClass and useExisting; ` +
        'give it one of them.',
    );
  }
  if (useFactory) return [{ provide: SESSIONS_OPTIONS, useFactory, inject }];
  return [
    ...(useClass ? [{ provide: SESSIONS_OPTIONS_FACTORY, useClass }] : []),
    {
      provide: SESSIONS_OPTIONS,
      inject: [useExisting ?? SESSIONS_OPTIONS_FACTORY],
      useFactory: (factory: SessionsOptionsFactory) => factory.createSessionsOptions(),
    },
  ];
}
