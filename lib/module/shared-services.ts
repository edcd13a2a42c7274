import { type DynamicModule, forwardRef, type InjectionToken, Module, type Provider } from '@nestjs/common';
import { SESSIONS_ADAPTER, TURN_QUEUE } from '../common/sessions.tokens.js';
import { PUBLIC_TOKENS } from './public-tokens.js';

/**
 * The services that `forFeature` provides, too. The adapter and the queue are not among them: Nest would call hooks that an
 * application's own class has once per feature.
 */
export const SHARED_TOKENS: readonly InjectionToken[] = PUBLIC_TOKENS.filter(
  (token) => token !== SESSIONS_ADAPTER && token !== TURN_QUEUE,
);

/** The tokens under which all modules see the services of `forRoot`. Only the providers below know them. */
const SHARED = new Map(SHARED_TOKENS.map((token) => [token, Symbol(`agent-sessions:shared:${nameOf(token)}`)]));

@Module({})
export class SharedServicesModule {}

/** Makes the services of the root visible in all modules, under tokens that only {@link sharedServices} knows. */
export function sharedServicesOf(root: DynamicModule): DynamicModule {
  return {
    module: SharedServicesModule,
    global: true,
    imports: [forwardRef(() => root)],
    providers: [...SHARED].map(([token, shared]) => ({ provide: shared, useExisting: token })),
    exports: [...SHARED.values()],
  };
}

/** Returns providers of the services of `forRoot` for another module. @param missing is called if there is no root */
export function sharedServices(missing: () => undefined): Provider[] {
  return [...SHARED].map(([token, shared]) => ({
    provide: token,
    inject: [{ token: shared, optional: true }],
    useFactory: (service: unknown) => service ?? missing(),
  }));
}

function nameOf(token: InjectionToken): string {
  return typeof token === 'function' ? token.name : String(token);
}
