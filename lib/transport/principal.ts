import { type ExecutionContext } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type Session } from '../ledger/session.js';
import { transportMessages } from './transport.messages.js';
import { UnauthenticatedHint } from './unauthenticated-hint.js';
import { transportOf } from './transport-of.js';

/** The authenticated user of a request, as resolved by the application. */
export interface Principal {
  readonly userId: string;
  readonly workspaceId?: string;
  /** Additional permissions, for example `state.reset` or `state.*`. Default: none; a principal may always use its own sessions. */
  readonly capabilities?: readonly string[];
}

/** Returns the principal of a request or message, or `null` or `undefined` if it is not authenticated. */
export type PrincipalResolver = (
  context: ExecutionContext,
) => Principal | null | undefined | Promise<Principal | null | undefined>;

/**
 * The default resolver. Reads `id`, `workspaceId` and `capabilities` of the user that Passport and most guards set. HTTP:
 * `request.user`. GraphQL: `context.req.user`, else `context.user`. WebSocket: `client.user`, else `client.data.user`.
 * Microservices: always `null`. A user without an `id`, or with an empty one, is not authenticated (NST-11).
 * @throws SessionsConfigurationError if `id` or `workspaceId` is not a string (NST-24)
 */
export const signedInUser: PrincipalResolver = (context) => {
  // Passport sets `false` for unauthenticated requests.
  const user = transportOf(context).user(context) as SignedInUser | null | undefined | false;
  if (user === null || user === undefined || user === false) return null;
  const userId = stringOf(user, 'id');
  if (userId === undefined || userId === '') return null;
  const workspaceId = stringOf(user, 'workspaceId');
  return {
    userId,
    ...(workspaceId === undefined ? {} : { workspaceId }),
    ...(isStrings(user.capabilities) ? { capabilities: user.capabilities } : {}),
  };
};

/**
 * Wraps the resolver to validate its result: a principal without a `userId` would match the sessions of all users.
 * @throws SessionsConfigurationError if `userId` or `workspaceId` is not a string (NST-24)
 */
export function checkedPrincipals(resolve: PrincipalResolver): PrincipalResolver {
  // A custom resolver can log why it returns no principal.
  const hint = resolve === signedInUser ? new UnauthenticatedHint() : null;
  return async (context) => {
    const principal = await resolve(context);
    if (principal === null || principal === undefined) {
      hint?.logOnce(context);
      return principal;
    }
    const { userId, workspaceId } = principal;
    // A string that is not a valid name matches no session.
    if (typeof userId !== 'string') throw wrongPrincipal('userId', 'must be a string.');
    if (workspaceId !== undefined && typeof workspaceId !== 'string')
      throw wrongPrincipal('workspaceId', 'must be a string or undefined.');
    return principal;
  };
}

/** Returns whether user and workspace both match. A session without a workspace does not belong to a principal with one, and vice versa. */
export function ownsSession(principal: Principal, session: Session): boolean {
  return session.userId === principal.userId && isInWorkspace(principal, session);
}

/** Returns whether both have the same workspace, or none. A custom store may return `null` for none. */
export function isInWorkspace(principal: Principal, session: Session): boolean {
  return (session.workspaceId ?? undefined) === principal.workspaceId;
}

interface SignedInUser {
  readonly id?: unknown;
  readonly workspaceId?: unknown;
  readonly capabilities?: unknown;
}

/** Returns a field of the user. Throws if it is not a string: ignoring it would merge several workspaces into one. */
function stringOf(user: SignedInUser, field: 'id' | 'workspaceId'): string | undefined {
  const value = user[field] ?? undefined;
  if (value === undefined || typeof value === 'string') return value;
  throw new SessionsConfigurationError(transportMessages.userFieldNotAString(field));
}

// The value is personal data and must not be logged.
function wrongPrincipal(field: keyof Principal, rule: string): SessionsConfigurationError {
  return new SessionsConfigurationError(`SessionsModule: The ${field} that the option principal returns ${rule}`);
}

/** Returns whether the value is an array of strings. Capabilities of another type are ignored. */
export function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
