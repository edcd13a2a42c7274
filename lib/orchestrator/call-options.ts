import { Allow } from 'class-validator';
import { MustBeBoolean, MustBeName, Optional } from '../common/check-input.js';

/** Options of `turn.step`. */
export class StepOptions {
  /**
   * Identifies the step together with its name, whatever the order of parallel calls: for example, an order id or a
   * file name. Calls with the same name and key are the same step. Default: the number of earlier steps with this name
   * in the same intent or enclosing call.
   */
  @Optional()
  @MustBeName()
  key?: string;
}

/** Options of `turn.tools.use`. */
export class ToolCallOptions {
  /**
   * The model's arguments, as JSON. The same call id with another input is then rejected (FIX-11). Only a digest is
   * stored. Default: inputs are not compared.
   */
  @Allow()
  input?: unknown;

  /**
   * Stores a failure as the result of the call: `use` throws ToolFailedError, in later attempts without running `work`
   * again (AIS-03). Use it if a model reads the failure, because its next answer depends on it. Errors with
   * `permanent: true`, an unavailable store and an abort of the turn are not stored. Default false: a failed call runs
   * again.
   */
  @Optional()
  @MustBeBoolean()
  storeFailure?: boolean;
}
