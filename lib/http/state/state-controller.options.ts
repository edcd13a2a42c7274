import { ControllerOptions } from '../controllers/controller.options.js';

/** The control plane over HTTP: `POST {path}/describe`, `{path}/reset` and `{path}/compact`. Default path `state`. */
export class StateControllerOptions extends ControllerOptions {}
