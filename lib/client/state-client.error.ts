import { type StateOperationResult } from '../state/state-report.js';

/** The control plane rejected the request or failed. Errors of `fetch` itself are not converted to this class. */
export class StateClientError extends Error {
  override readonly name = 'StateClientError';
  /** The HTTP status of the response. */
  readonly status: number;
  /**
   * A stable code, for example `FORBIDDEN`. `UNEXPECTED_ANSWER` if the response did not come from the control plane.
   */
  readonly code: string;
  /** Seconds to wait before a retry. */
  readonly retryAfter?: number;
  /** The partial result if only some modules failed. */
  readonly result?: StateOperationResult;

  /** @param body the parsed response body */
  constructor(status: number, body: { readonly [key: string]: unknown }) {
    const { code, message, retryAfter, result } = body;
    super(typeof message === 'string' ? message : `The control plane responded with status ${status}.`);
    this.status = status;
    this.code = typeof code === 'string' ? code : 'UNEXPECTED_ANSWER';
    if (typeof retryAfter === 'number') this.retryAfter = retryAfter;
    if (typeof result === 'object' && result !== null) this.result = result as StateOperationResult;
  }
}
