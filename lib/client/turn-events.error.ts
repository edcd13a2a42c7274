/** The events of a turn cannot be read, and reconnecting does not help. Other failures cause a reconnect. */
export class TurnEventsError extends Error {
  override readonly name = 'TurnEventsError';
  /** The HTTP status of the response. */
  readonly status: number;
  /**
   * A stable code, for example `TURN_NOT_FOUND`. `UNEXPECTED_ANSWER` if the response is not one of this package's
   * controllers or streams.
   */
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}
