import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type OrchestratorDefinition } from './orchestrator.js';

/** The orchestrators of this process by name. */
export class OrchestratorRegistry {
  private readonly definitions = new Map<string, OrchestratorDefinition>();
  private windowsByName: Record<string, number> = {};
  private plannedNames: readonly string[] = [];

  /** @throws SessionsConfigurationError when another orchestrator has the name */
  register(definition: OrchestratorDefinition): void {
    const known = this.definitions.get(definition.name);
    if (known && known !== definition) {
      throw new SessionsConfigurationError(
        `Two orchestrators are named ${JSON.stringify(definition.name)}; names must be unique.`,
      );
    }
    this.definitions.set(definition.name, definition);
    this.plannedNames = [...this.definitions.values()].flatMap(({ name, plan }) => (plan ? [name] : []));
    const { router, agents } = definition.historyWindow;
    this.windowsByName = { ...this.windowsByName, [definition.name]: Math.max(router, agents) };
  }

  get(name: string): OrchestratorDefinition | undefined {
    return this.definitions.get(name);
  }

  names(): string[] {
    return [...this.definitions.keys()];
  }

  /** Those that have a step plan. */
  planned(): readonly string[] {
    return this.plannedNames;
  }

  /** The longest history that any part of each orchestrator asks for. */
  windows(): Readonly<Record<string, number>> {
    return this.windowsByName;
  }
}
