import { toJson } from '../../common/json.js';
import { SessionNotFoundError } from '../../ledger/session.errors.js';
import { type SessionStore } from '../../session/session-store.service.js';
import { type SessionStateService } from '../../state/session-state.service.js';
import { type StateOperation, type StateOperationResult } from '../../state/state-report.js';
import { type StateRequest } from '../../state/state-request.js';
import { type Principal } from '../../transport/principal.js';
import { UnauthenticatedError } from '../../transport/transport.errors.js';
import { type HttpRequest, readIdempotencyKey } from '../controllers/http-request.js';
import { readRequest } from './read-request.js';
import { type KeyedResult, type RequestKeys } from './request-keys.js';
import { assertAllowed, mayAccess } from './state-access.js';
import { type StateAudit } from './state-audit.js';
import { callOf, type StateCall } from './state-call.js';
import { StateStoresFailedError } from './state-http.errors.js';

/**
 * Processes a request to the control plane after the guards: validates the body, checks capabilities, the owner of the
 * session and the Idempotency-Key, runs the operation, and reports it to the audit log.
 */
export class StateCalls {
  constructor(
    private readonly state: SessionStateService,
    private readonly sessions: SessionStore,
    private readonly keys: RequestKeys,
    private readonly audit: StateAudit,
  ) {}

  async answer(operation: StateOperation, request: HttpRequest): Promise<StateOperationResult> {
    const call = callOf(request, operation);
    try {
      const { result, repeated } = await this.handle(call, request);
      if (repeated) this.audit.repeated(call);
      else this.audit.done(call, result);
      return result;
    } catch (error) {
      this.audit.refused(call, error, request.body);
      throw error;
    }
  }

  private async handle(call: StateCall, http: HttpRequest): Promise<KeyedResult> {
    const { operation, principal } = call;
    if (!principal) throw new UnauthenticatedError();
    const request = readRequest(operation, http);
    call.request = request;
    const key = readIdempotencyKey(http);
    assertAllowed(principal, operation, request);
    await this.assertSession(principal, request);

    const act = (): Promise<StateOperationResult> => this.act(operation, request);
    if (key === undefined) return { result: await act(), repeated: false };
    const keyed = { principal, key, content: toJson({ operation, request: { ...request } }, 'request') };
    if (operation !== 'describe') return this.keys.once(keyed, act);
    await this.keys.bind(keyed);
    return { result: await act(), repeated: false };
  }

  /** Checks the session. Another user's session and an unknown one are indistinguishable. */
  private async assertSession(principal: Principal, { sessionId }: StateRequest): Promise<void> {
    if (sessionId === undefined) return;
    const session = await this.sessions.get(sessionId);
    if (!session || !mayAccess(principal, session)) throw new SessionNotFoundError(sessionId);
  }

  private async act(operation: StateOperation, request: StateRequest): Promise<StateOperationResult> {
    const result = await this.state[operation](request);
    if (result.errors.length > 0) throw new StateStoresFailedError(result);
    return result;
  }
}
