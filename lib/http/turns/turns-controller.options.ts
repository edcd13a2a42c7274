import { Must, MustBeInteger, Optional } from '../../common/check-input.js';
import { isName } from '../../common/ids.js';
import { type OrchestratorRef } from '../../orchestration/orchestrator-ref.js';
import { WHEN_BUSY, type WhenBusy } from '../../ledger/turn.js';
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

  /**
   * The policies that a client may name. Beware: they act on every turn of the session's lane, also on those of orchestrators that
   * clients may not speak to. Default: none, so the module's `turns.whenBusy` decides.
   */
  @Optional()
  @Must(
    (value) => Array.isArray(value) && value.every((policy) => WHEN_BUSY.includes(policy as WhenBusy)),
    `must list policies: ${WHEN_BUSY.join(', ')}.`,
  )
  whenBusy?: readonly WhenBusy[];

  /** The streams of events that a principal may have open in one process. Default 16. */
  @Optional()
  @MustBeInteger(1, Number.MAX_SAFE_INTEGER)
  maxStreamsPerPrincipal?: number;
}

function isOrchestrator(value: unknown): boolean {
  const name = typeof value === 'string' ? value : (value as { readonly name?: unknown } | null | undefined)?.name;
  return isName(name);
}
