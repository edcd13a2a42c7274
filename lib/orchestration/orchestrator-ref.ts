import { SetMetadata, type Type } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';

const ORCHESTRATOR = Symbol('agent-sessions:orchestrator');

interface Named {
  readonly name: string;
}

/** The argument of `forFeature` and `@InjectOrchestrator`: a class with `@Orchestrator`, or a definition. */
export type OrchestratorRef = Type | { readonly name: string };

/** Marks the class as an orchestrator with these options. */
export function markOrchestrator(target: object, options: Named): void {
  SetMetadata(ORCHESTRATOR, options)(target as Type);
}

/** Returns the options of {@link markOrchestrator}; `undefined` for another class. */
export function orchestratorMark(target: object): Named | undefined {
  return Reflect.getMetadata(ORCHESTRATOR, target) as Named | undefined;
}

/** @throws SessionsConfigurationError for a class that is not an orchestrator */
export function orchestratorName(orchestrator: OrchestratorRef): string {
  if (typeof orchestrator !== 'function') return orchestrator.name;
  const mark = orchestratorMark(orchestrator);
  if (mark) return mark.name;
  throw new SessionsConfigurationError(
    `${orchestrator.name} is not an orchestrator. Decorate the class with @Orchestrator({ name }).`,
  );
}
