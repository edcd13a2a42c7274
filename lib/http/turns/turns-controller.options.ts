import { Must } from '../../common/check-input.js';
import { isName } from '../../common/ids.js';
import { type OrchestratorRef } from '../../orchestrator/orchestrator.decorators.js';
import { ControllerOptions } from '../controllers/controller.options.js';

/** The turns of the principal's own sessions over HTTP, see docs/controllers.md. Default path `turns`. */
export class TurnsControllerOptions extends ControllerOptions {
  /**
   * Those that clients may speak to, by class, definition or name. Turns of others are neither taken nor shown. A client that names
   * none speaks to the only one.
   */
  @Must(
    (value) => Array.isArray(value) && value.length > 0 && value.every(isOrchestrator),
    'must list at least one orchestrator: a class, a definition or a name.',
  )
  orchestrators!: readonly (OrchestratorRef | string)[];
}

function isOrchestrator(value: unknown): boolean {
  const name = typeof value === 'string' ? value : (value as { readonly name?: unknown } | null | undefined)?.name;
  return isName(name);
}
