import { type StateOperationResult } from '../state/state-report.js';

/** The control plane refused, or failed. What `fetch` itself rejects with is not one of these. */
export class StateClientError extends Error {
  override readonly name = 'StateClientError';
  /** Of the HTTP answer. */
  readonly status: number;
  /** Stable, for example `FORBIDDEN`; `UNEXPECTED_ANSWER` when it was not the control plane that answered. */
  readonly code: string;
  /** Seconds after which it may be sent again. */
  readonly retryAfter?: number;
  /** What was done all the same, where only some of the modules failed. */
  readonly result?: StateOperationResult;

  /** @param body as it came */
  constructor(status: number, body: { readonly [key: string]: unknown }) {
    const { code, message, retryAfter, result } = body;
    super(typeof message === 'string' ? message : `The control plane's address answered ${status}.`);
    this.status = status;
    this.code = typeof code === 'string' ? code : 'UNEXPECTED_ANSWER';
    if (typeof retryAfter === 'number') this.retryAfter = retryAfter;
    if (typeof result === 'object' && result !== null) this.result = result as StateOperationResult;
  }
}
