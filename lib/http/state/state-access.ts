import { shown } from '../../common/check-options.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type Session } from '../../ledger/session.js';
import { type StateOperation } from '../../state/state-report.js';
import { type ResetStateRequest, type StateRequest } from '../../state/state-request.js';
import { isInWorkspace, isStrings, ownsSession, type Principal } from '../../transport/principal.js';
import { httpMessages } from '../http.messages.js';
import { forbidden } from './state-http.errors.js';

/** The capabilities for the control plane (STA-25). */
export const STATE_CAPABILITIES = [
  'state.describe',
  'state.reset',
  'state.compact',
  /** Required in addition to `state.compact` to compact a conversation. */
  'history.compact',
  /**
   * Required in addition to the others for other users' sessions of the workspace, and for requests without a session.
   */
  'state.operator',
] as const;
/** One of {@link STATE_CAPABILITIES}. */
export type StateCapability = (typeof STATE_CAPABILITIES)[number];

/** Grants every operation: `state.describe`, `state.reset` and `state.compact`. It does not grant `state.operator` (FIX-46). */
const EVERY_OPERATION = 'state.*';
/** Strings like `state*` and `history.*`. Other strings with an asterisk, as `state-tax.*`, belong to the application. */
const MALFORMED = /^(?:state|history)(?:[.:].*)?\*/;

const CONVERSATION = 'conversation';

/**
 * Checks a capability.
 * @throws StateRequestError (`FORBIDDEN`) if the principal does not have the capability; SessionsConfigurationError for an invalid
 * wildcard
 */
export function assertCapability(principal: Principal, capability: StateCapability): void {
  if (!has(principal, capability)) throw forbidden(`the capability ${capability}`);
}

/** Checks the capabilities that this request additionally requires. @throws StateRequestError (`FORBIDDEN`) */
export function assertAllowed(principal: Principal, operation: StateOperation, request: StateRequest): void {
  const { sessionId, stores } = request;
  if (operation === 'compact' && (stores?.includes(CONVERSATION) ?? true)) {
    assertCapability(principal, 'history.compact');
  }
  if (sessionId !== undefined) return;
  assertCapability(principal, 'state.operator');
  // `all` includes every workspace.
  if ((request as ResetStateRequest).all && principal.workspaceId !== undefined) {
    throw forbidden('an operator who belongs to no workspace');
  }
}

/** Returns whether the principal owns the session or is an operator. */
export function mayAccess(principal: Principal, session: Session): boolean {
  if (ownsSession(principal, session)) return true;
  return isInWorkspace(principal, session) && has(principal, 'state.operator');
}

/** Checks the list first: an application's resolver may return a string, whose `includes` would match substrings. */
function has({ capabilities }: Principal, capability: StateCapability): boolean {
  if (!isStrings(capabilities)) return false;
  const malformed = capabilities.find((granted) => MALFORMED.test(granted) && granted !== EVERY_OPERATION);
  if (malformed !== undefined) throw unknownWildcard(malformed);
  return capabilities.includes(capability) || (isOperation(capability) && capabilities.includes(EVERY_OPERATION));
}

function isOperation(capability: StateCapability): boolean {
  return capability.startsWith('state.') && capability !== 'state.operator';
}

function unknownWildcard(granted: string): SessionsConfigurationError {
  return new SessionsConfigurationError(
    httpMessages.unknownWildcard(shown(granted), EVERY_OPERATION, STATE_CAPABILITIES),
  );
}
