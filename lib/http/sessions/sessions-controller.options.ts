import { MustBeBoolean, Optional } from '../../common/check-input.js';
import { ControllerOptions } from '../controllers/controller.options.js';

/** The principal's own sessions over HTTP, see docs/controllers.md. Default path `sessions`. */
export class SessionsControllerOptions extends ControllerOptions {
  /** Whether a client may choose the id of the session that it creates (NST-17). Default false. */
  @Optional()
  @MustBeBoolean()
  allowClientIds?: boolean;
}
