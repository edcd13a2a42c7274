import { Allow } from 'class-validator';
import { Must, MustBeBoolean, MustBeInteger, MustBeName, Optional } from '../common/check-input.js';
import { isStateSchema, type StateSchema } from './state-schema.js';

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

/** The maximum `timeoutMs` of a wait: ten years. */
const MAX_WAIT_MS = 315_360_000_000;

const MustBeFunction = (rule: string): PropertyDecorator => Must((value) => typeof value === 'function', rule);

/** Validates the options of `turn.waitFor`, see `WaitForOptions`. */
export class WaitOptions {
  @Optional()
  @MustBeFunction('must be a class.')
  schema?: new () => object;

  @Optional()
  @MustBeInteger(1, MAX_WAIT_MS)
  timeoutMs?: number;

  @Optional()
  @MustBeFunction('must be a function that returns the result after the timeout.')
  onTimeout?: () => unknown;
}

/** Options of `turn.tools.use`. */
export class ToolCallOptions {
  /**
   * The model's arguments, as JSON. While a call runs, its id with another input is rejected (FIX-11); after it has
   * ended, the id with another input is a new call (FIX-63). Only a digest is stored. Default: inputs are not compared.
   */
  @Allow()
  input?: unknown;

  /**
   * Validates `input` before the plan admits the call, without changing it: a class with class-validator's decorators,
   * or a Standard Schema. Nested objects of a class need `@ValidateNested()` and `@Type()` of class-transformer
   * (FIX-73). A call whose result is stored is not validated again. Default: any JSON.
   */
  @Optional()
  @Must(isStateSchema, 'must be a class or a Standard Schema.')
  schema?: StateSchema;

  /**
   * The number of the model's answer that contains the call, from 0: the same in every attempt (FIX-63). Set it if later
   * answers of the turn may use an id again, even with the same input. Default: an id identifies a call in all answers.
   */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  answer?: number;

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
