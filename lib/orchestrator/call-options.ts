import { Allow } from 'class-validator';
import { MustBeName, Optional } from '../common/check-input.js';

/** Options of `turn.step`. */
export class StepOptions {
  /**
   * Identifies the step beside its name, whatever order parallel calls come in: an order id, a file name. The same key again
   * is the same step. Default: the number of earlier steps with this name in the same intent or enclosing call.
   */
  @Optional()
  @MustBeName()
  key?: string;
}

/** Options of `turn.tools.use`. */
export class ToolCallOptions {
  /**
   * The model's arguments, as JSON: the same call id with another input is then refused (FIX-11). A digest is stored. Default:
   * inputs are not compared.
   */
  @Allow()
  input?: unknown;
}
