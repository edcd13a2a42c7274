import { Allow } from 'class-validator';
import { type SessionsControllerOptions } from '../sessions/sessions-controller.options.js';
import { type StateControllerOptions } from '../state/state-controller.options.js';
import { type TurnsControllerOptions } from '../turns/turns-controller.options.js';

/** The controllers of this package (NST-16). Each is off unless it is named here. */
export class SessionsControllersOptions {
  /** Begins, shows and ends the sessions of the user who asks. Default: off. */
  @Allow()
  sessions?: SessionsControllerOptions;

  /** Submits messages, and streams and cancels turns. Default: off. */
  @Allow()
  turns?: TurnsControllerOptions;

  /** The control plane: describes, resets and compacts the state of sessions. Default: off. */
  @Allow()
  state?: StateControllerOptions;
}
