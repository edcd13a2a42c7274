import { isOrchestratorDefinition } from '../orchestrator/define-orchestrator.js';
import { type OrchestratorRef } from '../orchestration/orchestrator-ref.js';
import { type OrchestratorDefinition } from '../orchestrator/orchestrator.js';
import { OrchestratorRegistry } from '../orchestrator/orchestrator.registry.js';

/** The orchestrators of a test: definitions that it gives take the place of others of the same name. */
export class StandInRegistry extends OrchestratorRegistry {
  private readonly standIns = new OrchestratorRegistry();

  /**
   * @param modules the state modules of the package that are enabled
   * @throws SessionsConfigurationError when two of them have the same name
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
