import { type ModulesContainer } from '@nestjs/core';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { SESSIONS_OPTIONS } from '../common/sessions.tokens.js';
import { moduleMessages } from './module.messages.js';
import { SharedServicesModule } from './shared-services.js';

/**
 * Rejects a second `forRoot` in the application (FIX-70): each has its own store, workers and sweep, and a service would
 * belong to one of them by chance. One dynamic module that is imported twice is accepted: Nest creates one module for it.
 * @throws SessionsConfigurationError with the modules that import a `forRoot` without `isGlobal`
 */
export function assertOneRoot(container: ModulesContainer): void {
  const modules = [...container.values()];
  const roots = modules.filter(({ providers }) => providers.has(SESSIONS_OPTIONS));
  if (roots.length === 1) return;
  // The importers of a global one are unknown, because Nest adds global modules to the imports of every module.
  const local = roots.filter(({ isGlobal }) => !isGlobal);
  const importers = modules
    .filter(({ imports, metatype }) => metatype !== SharedServicesModule && local.some((root) => imports.has(root)))
    .map(({ name }) => name);
  throw new SessionsConfigurationError(moduleMessages.severalRoots(roots.length, importers));
}
