import { SetMetadata, type Type } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';

const ORCHESTRATOR = Symbol('agent-sessions:orchestrator');

interface Named {
  readonly name: string;
}

/** What `forFeature` and `@InjectOrchestrator` take: a class with `@Orchestrator`, or a definition. */
export type OrchestratorRef = Type | { readonly name: string };

/** Makes the class an orchestrator with these options. */
export function markOrchestrator(target: object, options: Named): void {
  SetMetadata(ORCHESTRATOR, options)(target as Type);
}

/** The options of {@link markOrchestrator}; `undefined` for another class. */
export function orchestratorMark(target: object): Named | undefined {
  return Reflect.getMetadata(ORCHESTRATOR, target) as Named | undefined;
}

/** @throws SessionsConfigurationError for a class that is not an orchestrator */
export function orchestratorName(orchestrator: OrchestratorRef): string {
  if (typeof orchestrator !== 'function') return orchestrator.name;
  const mark = orchestratorMark(orchestrator);
  if (mark) return mark.name;
  throw new SessionsConfigurationError(
    `${orchestrator.name} is no orchestrator. Decorate the class with @Orchestrator({ name }).`,
  );
}
