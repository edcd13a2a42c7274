import { type FactoryProvider } from '@nestjs/common';
import { ModuleRef, type ModulesContainer } from '@nestjs/core';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { SESSIONS_OPTIONS } from '../common/sessions.tokens.js';
import { definitionMessages } from './definition.messages.js';

/**
 * Stops the start if no module imports `SessionsModule.forRoot()` (DAY-04). Otherwise the first use of a handle would fail. A feature
 * needs no root if a test has replaced all that it exports.
 * @param feature the call of `forFeature`
 * @param exported the providers that the feature exports
 * @param own the reference of the feature's module
 * @throws SessionsConfigurationError naming the feature and the modules that import it
 */
export function assertRoot(
  feature: string,
  exported: readonly FactoryProvider[],
  own: ModuleRef,
  container: ModulesContainer,
): void {
  const modules = [...container.values()];
  if (modules.some(({ providers }) => providers.has(SESSIONS_OPTIONS))) return;
  const module = modules.find((each) => each.getProviderByKey<ModuleRef>(ModuleRef).instance === own);
  const isReplaced = ({ provide, useFactory }: FactoryProvider): boolean =>
    module !== undefined && module.providers.get(provide)?.metatype !== useFactory;
  if (exported.length > 0 && exported.every(isReplaced)) return;
  const importers = modules.filter(({ imports }) => module && imports.has(module)).map(({ name }) => name);
  const by = importers.length === 0 ? '' : `, in the imports of ${importers.join(' and ')},`;
  throw missingRoot(`${feature}${by}`);
}

/** @param subject what requires the root */
export function missingRoot(subject: string): SessionsConfigurationError {
  return new SessionsConfigurationError(definitionMessages.missingRoot(subject));
}
