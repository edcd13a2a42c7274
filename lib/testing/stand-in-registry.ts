import { isOrchestratorDefinition } from '../orchestrator/define-orchestrator.js';
import { type OrchestratorRef } from '../orchestration/orchestrator-ref.js';
import { type OrchestratorDefinition } from '../orchestrator/orchestrator.js';
import { OrchestratorRegistry } from '../orchestrator/orchestrator.registry.js';

/** A registry in which the test's definitions replace orchestrators of the same name. */
export class StandInRegistry extends OrchestratorRegistry {
  private readonly standIns = new OrchestratorRegistry();

  /**
   * @param modules the enabled state modules of the package
   * @throws SessionsConfigurationError if two definitions have the same name
   */
  constructor(orchestrators: readonly OrchestratorRef[], modules: readonly string[]) {
    super(modules);
    const definitions: readonly unknown[] = orchestrators;
    definitions.filter(isOrchestratorDefinition).forEach((definition) => this.standIns.register(definition));
  }

  override register(definition: OrchestratorDefinition): void {
    super.register(this.standIns.get(definition.name) ?? definition);
  }
}
