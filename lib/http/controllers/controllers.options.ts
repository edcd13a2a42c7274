import { Allow } from 'class-validator';
import { type SessionsControllerOptions } from '../sessions/sessions-controller.options.js';
import { type StateControllerOptions } from '../state/state-controller.options.js';
import { type TurnsControllerOptions } from '../turns/turns-controller.options.js';

/** The controllers of this package (NST-16). Each is off unless it is named here. */
export class SessionsControllersOptions {
  @Allow()
  sessions?: SessionsControllerOptions;

  @Allow()
  turns?: TurnsControllerOptions;

  @Allow()
  state?: StateControllerOptions;
}
