import { HttpStatus, Logger } from '@nestjs/common';
import { isApplicationFault } from '../common/sessions-error-body.js';
import { traceOf } from '../common/error-trace.js';
import { toJsonObject } from '../common/json.js';
import { loggedId } from '../common/log-details.js';
import { InvalidInputError, SessionsError, StoreUnavailableError } from '../common/sessions.error.js';
import { InvalidCursorError } from './state-data.js';
import { type StateInspection } from './state-module.js';
import { type StateModules } from './state-modules.js';
import {
  type StateOperation,
  type StateOperationResult,
  type StateStoreError,
  type StateStoreReport,
} from './state-report.js';
import { type StateRequest } from './state-request.js';

/** The message of store errors, whose details are not public. */
const UNAVAILABLE = 'The store is unavailable. Retry later.';

interface ModuleCall {
  readonly operation: StateOperation;
  /** The module's name. */
  readonly store: string;
  readonly sessionId: string | undefined;
}

/** The fields of a report besides the name of its module. */
export type Findings = Partial<Omit<StateStoreReport, 'name' | 'enabled'>>;

type Visit = (name: string, module: StateInspection) => Findings | Promise<Findings>;

/**
 * Runs an operation on each requested module. The result contains the errors of failed modules; the other modules are
 * processed.
 */
export class StateOperations {
  private readonly logger = new Logger('SessionStateService');

  constructor(private readonly modules: StateModules) {}

  async run(
    operation: StateOperation,
    { sessionId, stores, metadata = {} }: StateRequest,
    visit: Visit,
  ): Promise<StateOperationResult> {
    const echo = toJsonObject(metadata, 'request.metadata');
    const enabled = this.modules.names();
    const asked = stores === undefined ? enabled : enabled.filter((name) => stores.includes(name));
    const reports = await Promise.all(asked.map((store) => this.report({ operation, store, sessionId }, visit)));
    return {
      operation,
      sessionId: sessionId ?? null,
      stores: reports,
      cleared: reports.flatMap(({ name, cleared }) => (cleared ? [name] : [])),
      compacted: reports.flatMap(({ name, compacted }) => (compacted ? [name] : [])),
      missing: [...new Set(stores)].filter((name) => !enabled.includes(name)),
      errors: reports.flatMap(({ error }) => error ?? []),
      metadata: echo,
    };
  }

  /**
   * Converts an error to the public form. Only rejections of this package keep their message; other errors are logged.
   */
  toStoreError(call: ModuleCall, error: unknown): StateStoreError {
    const { store, operation } = call;
    if (!SessionsError.isInstance(error) || isApplicationFault(error)) {
      this.logFailure(call, error);
      return { store, code: 'STATE_MODULE_FAILED', message: `The module failed to ${operation}.` };
    }
    const { code, message, retryAfterMs } = error as SessionsError & { readonly retryAfterMs?: number };
    if (error.getStatus() >= Number(HttpStatus.INTERNAL_SERVER_ERROR)) this.logFailure(call, error.cause ?? error);
    return {
      store,
      code,
      message: StoreUnavailableError.isInstance(error) ? UNAVAILABLE : message,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    };
  }

  private async report(call: ModuleCall, visit: Visit): Promise<StateStoreReport> {
    const { store: name } = call;
    const nothing = { name, enabled: true, cleared: false, compacted: false, metadata: {} };
    try {
      return { ...nothing, ...(await visit(name, this.modules.get(name)!)) };
    } catch (error) {
      if (error instanceof InvalidCursorError) throw new InvalidInputError('request.after', error.problem);
      return { ...nothing, error: this.toStoreError(call, error) };
    }
  }

  private logFailure({ operation, store, sessionId }: ModuleCall, error: unknown): void {
    const what = sessionId === undefined ? '' : ` session ${loggedId(sessionId)}`;
    this.logger.error(`The state module ${store} failed to ${operation}${what}.`, traceOf(error));
  }
}
