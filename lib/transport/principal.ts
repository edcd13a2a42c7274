import { type ExecutionContext } from '@nestjs/common';
import { type Session } from '../session/session.js';
import { transportOf } from './transport-of.js';

/** Whom a request speaks for, as the application's authentication found out. */
export interface Principal {
  readonly userId: string;
  readonly workspaceId?: string;
  /** What it may do besides using its own sessions, for example `state.reset`. Default: nothing. */
  readonly capabilities?: readonly string[];
}

/** Finds the principal of a request or a message; `null` or `undefined` when nobody is signed in. */
export type PrincipalResolver = (
  context: ExecutionContext,
) => Principal | null | undefined | Promise<Principal | null | undefined>;

/**
 * The default: what passport and most guards leave behind, with `id`, `workspaceId` and `capabilities`. HTTP: `request.user`.
 * GraphQL: `context.req.user`, else `context.user`. WebSocket: `client.user`, else `client.data.user`. Microservices: nobody.
 */
export const signedInUser: PrincipalResolver = (context) => {
  const user = transportOf(context).user(context) as SignedInUser | null | undefined;
  if (typeof user?.id !== 'string') return null;
  return {
    userId: user.id,
    ...(typeof user.workspaceId === 'string' ? { workspaceId: user.workspaceId } : {}),
    ...(isTexts(user.capabilities) ? { capabilities: user.capabilities } : {}),
  };
};

/** Both must match: a session without a workspace belongs to no principal that has one, and the other way round. */
export function ownsSession(principal: Principal, session: Session): boolean {
  return session.userId === principal.userId && session.workspaceId === principal.workspaceId;
}

interface SignedInUser {
  readonly id?: unknown;
  readonly workspaceId?: unknown;
  readonly capabilities?: unknown;
}

/** Whether it is a list of texts, as capabilities must be to count. */
export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
