import { type ExecutionContext } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type Session } from '../ledger/session.js';
import { NobodyHint } from './nobody-hint.js';
import { transportOf } from './transport-of.js';

/** Whom a request speaks for, as the application's authentication found out. */
export interface Principal {
  readonly userId: string;
  readonly workspaceId?: string;
  /** What it may do besides using its own sessions, for example `state.reset` or `state.*`. Default: nothing. */
  readonly capabilities?: readonly string[];
}

/** Finds the principal of a request or a message; `null` or `undefined` when nobody is signed in. */
export type PrincipalResolver = (
  context: ExecutionContext,
) => Principal | null | undefined | Promise<Principal | null | undefined>;

/**
 * The default: what passport and most guards leave behind, with `id`, `workspaceId` and `capabilities`. HTTP: `request.user`.
 * GraphQL: `context.req.user`, else `context.user`. WebSocket: `client.user`, else `client.data.user`. Microservices: nobody.
 * A user without `id` is nobody (NST-11).
 * @throws SessionsConfigurationError for an `id` or a `workspaceId` that is no text (NST-24)
 */
export const signedInUser: PrincipalResolver = (context) => {
  // Passport leaves `false` where nobody is.
  const user = transportOf(context).user(context) as SignedInUser | null | undefined | false;
  if (user === null || user === undefined || user === false) return null;
  const userId = textOf(user, 'id');
  if (userId === undefined) return null;
  const workspaceId = textOf(user, 'workspaceId');
  return {
    userId,
    ...(workspaceId === undefined ? {} : { workspaceId }),
    ...(isTexts(user.capabilities) ? { capabilities: user.capabilities } : {}),
  };
};

/**
 * The resolver, with what it gives checked: a principal without a user would be asked for nobody's sessions, and find everybody's.
 * @throws SessionsConfigurationError for a `userId` or a `workspaceId` that is no text (NST-24)
 */
export function checkedPrincipals(resolve: PrincipalResolver): PrincipalResolver {
  // A resolver of the application's knows why it finds nobody.
  const hint = resolve === signedInUser ? new NobodyHint() : null;
  return async (context) => {
    const principal = await resolve(context);
    if (principal === null || principal === undefined) {
      hint?.tell(context);
      return principal;
    }
    const { userId, workspaceId } = principal;
    // A text that is no name has no sessions.
    if (typeof userId !== 'string') throw wrongPrincipal('userId', 'must be a text.');
    if (workspaceId !== undefined && typeof workspaceId !== 'string')
      throw wrongPrincipal('workspaceId', 'must be a text; without one: undefined.');
    return principal;
  };
}

/** Both must match: a session without a workspace belongs to no principal that has one, and the other way round. */
export function ownsSession(principal: Principal, session: Session): boolean {
  return session.userId === principal.userId && session.workspaceId === principal.workspaceId;
}

interface SignedInUser {
  readonly id?: unknown;
  readonly workspaceId?: unknown;
  readonly capabilities?: unknown;
}

/** Leaving out what is no text would make one workspace of several. */
function textOf(user: SignedInUser, field: 'id' | 'workspaceId'): string | undefined {
  const value = user[field] ?? undefined;
  if (value === undefined || typeof value === 'string') return value;
  throw new SessionsConfigurationError(
    `SessionsModule: The signed-in user's ${field} must be a text. Make it one, or map the user with the option principal.`,
  );
}

// The value is somebody's: it must not stand in a log.
function wrongPrincipal(field: keyof Principal, rule: string): SessionsConfigurationError {
  return new SessionsConfigurationError(`SessionsModule: The ${field} that the option principal gives ${rule}`);
}

/** Whether it is a list of texts, as capabilities must be to count. */
export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
