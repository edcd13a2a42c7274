import { type StateOperationResult } from '../state/state-report.js';

/** Marks the errors of every copy of this package. */
const RESPONSE = Symbol.for('nestjs-agent-sessions.response-error');

/** @inline */
type ResponseErrorDetails = Partial<Pick<ResponseError, 'result' | 'retryAfter'>>;

/**
 * The response is not what was asked for: the server rejects the request or has failed, or a proxy has answered. Errors of `fetch`
 * itself are not converted to this class.
 */
export class ResponseError extends Error {
  override readonly name = 'ResponseError';
  /** Seconds to wait before a retry. */
  readonly retryAfter?: number;
  /** The partial result of the control plane if only some modules failed. */
  readonly result?: StateOperationResult;

  /** @hidden */
  constructor(
    /** The HTTP status of the response. */
    readonly status: number,
    /**
     * A stable code, for example `TURN_NOT_FOUND` or `FORBIDDEN`. `UNEXPECTED_ANSWER` if the response is not one of this package's
     * controllers or streams.
     */
    readonly code: string,
    message: string,
    details: ResponseErrorDetails = {},
  ) {
    super(message);
    Object.assign(this, details);
  }

  /** Returns whether the error is a ResponseError, also of another copy of this package. */
  static isInstance(this: void, error: unknown): error is ResponseError {
    return typeof error === 'object' && error !== null && RESPONSE in error;
  }

  /** @internal */
  get [RESPONSE](): true {
    return true;
  }
}
