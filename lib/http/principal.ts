import { type ExecutionContext } from '@nestjs/common';

/** Whom a request speaks for, as the application's authentication found out. */
export interface Principal {
  readonly userId: string;
  readonly workspaceId?: string;
}

/** Finds the principal of a request; `null` or `undefined` when nobody is signed in. */
export type PrincipalResolver = (
  context: ExecutionContext,
) => Principal | null | undefined | Promise<Principal | null | undefined>;

/** The default: what passport and most guards leave on the request. */
export const requestUser: PrincipalResolver = (context) => {
  const { user } = context.switchToHttp().getRequest<{ user?: { id?: unknown; workspaceId?: unknown } }>();
  if (typeof user?.id !== 'string') return null;
  return { userId: user.id, ...(typeof user.workspaceId === 'string' ? { workspaceId: user.workspaceId } : {}) };
};
