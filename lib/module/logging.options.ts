import { MustBeBoolean, Optional } from '../common/check-input.js';

/** The details that logs show besides classes, codes, stacks, and names of your code (DAY-02). */
export class LoggingOptions {
  /**
   * Whether logs show the messages of errors, which may contain user input, and stacks without the frames of this package.
   * Default: true, but false if NODE_ENV is `production`.
   */
  @Optional()
  @MustBeBoolean()
  messages?: boolean;

  /**
   * Whether logs show the ids of sessions, turns and users; otherwise their hashes. Default: true, but false if NODE_ENV is
   * `production`.
   */
  @Optional()
  @MustBeBoolean()
  ids?: boolean;
}
