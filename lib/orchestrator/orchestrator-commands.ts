import { isPlainObject } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';

/** Does something about an orchestrator's conversation in a session; checks its own arguments. */
export type OrchestratorCommand = (orchestrator: string, args: Readonly<Record<string, unknown>>) => Promise<unknown>;

/** What `handle.command(name, args)` can do, by name (BOT-01). */
export class OrchestratorCommands {
  private readonly commands = new Map<string, OrchestratorCommand>();

  register(name: string, command: OrchestratorCommand): void {
    this.commands.set(name, command);
  }

  /** @throws InvalidInputError for an unknown name; what the command throws */
  async run(orchestrator: string, name: string, args: unknown): Promise<unknown> {
    const command = this.commands.get(name);
    if (!command) {
      const known = [...this.commands.keys()].sort().join(', ');
      throw new InvalidInputError('command', `${JSON.stringify(name)} is unknown; known are: ${known || 'none'}.`);
    }
    if (!isPlainObject(args)) throw new InvalidInputError('args', 'must be an object.');
    return command(orchestrator, args);
  }
}
