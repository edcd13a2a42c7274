import { Injectable, Logger, type OnApplicationBootstrap, RequestMethod } from '@nestjs/common';
import { ApplicationConfig, DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core';
import { UseSession } from './session.decorators.js';
import { transportMessages } from './transport.messages.js';

/** The metadata key of a route's method in Nest. */
const METHOD = 'method';
/** The methods whose responses `CacheInterceptor` stores. */
const CACHED_METHODS: readonly unknown[] = [RequestMethod.GET, RequestMethod.ALL];

type Controller = ReturnType<DiscoveryService['getControllers']>[number];

/**
 * Warns at startup if a global `CacheInterceptor` stores responses of routes with `@UseSession()` (FIX-76). It ignores
 * `Cache-Control`, and its keys are URLs, which do not contain the session.
 */
@Injectable()
export class CachedRoutesHint implements OnApplicationBootstrap {
  private readonly logger = new Logger('SessionGuard');

  constructor(
    private readonly config: ApplicationConfig,
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly reflector: Reflector,
  ) {}

  onApplicationBootstrap(): void {
    if (!this.cachesGlobally()) return;
    const routes = this.discovery.getControllers().flatMap((controller) => this.sessionRoutes(controller));
    if (routes.length > 0) this.logger.warn(transportMessages.sharedCache(routes));
  }

  private cachesGlobally(): boolean {
    return (
      this.config.getGlobalInterceptors().some(isCacheInterceptor) ||
      this.config.getGlobalRequestInterceptors().some(({ metatype }) => isCacheInterceptor(metatype?.prototype))
    );
  }

  /** Returns the cached routes with a session, except those of this package's controllers. */
  private sessionRoutes({ metatype, host }: Controller): string[] {
    if (typeof metatype !== 'function' || host?.providers.has(CachedRoutesHint)) return [];
    const prototype = metatype.prototype as Readonly<Record<string, () => unknown>>;
    return this.scanner
      .getAllMethodNames(prototype)
      .filter((name) => CACHED_METHODS.includes(Reflect.getMetadata(METHOD, prototype[name])))
      .filter((name) => this.reflector.getAllAndOverride(UseSession, [prototype[name], metatype]))
      .map((name) => `${metatype.name}.${name}`);
  }
}

/** Returns whether the value has the methods of `CacheInterceptor` of @nestjs/cache-manager, which may be minified. */
function isCacheInterceptor(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'trackBy' in value && 'isRequestCacheable' in value;
}
