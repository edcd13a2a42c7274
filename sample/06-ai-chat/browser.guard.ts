import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';

/** The cookie with the user, see `servePage`. */
export const USER_COOKIE = 'ai_chat_user';

interface BrowserRequest {
  readonly headers: { readonly cookie?: string };
  user?: { readonly id: string };
}

/** Placeholder for your authentication: each browser is a user. Requests without a user are rejected. */
@Injectable()
export class BrowserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<BrowserRequest>();
    const id = userOf(request);
    if (id !== undefined) request.user = { id };
    return true;
  }
}

/** Returns the user that the cookie names. */
export function userOf({ headers }: BrowserRequest): string | undefined {
  const cookies = (headers.cookie ?? '').split(/; */);
  return cookies.find((cookie) => cookie.startsWith(`${USER_COOKIE}=`))?.slice(USER_COOKIE.length + 1) || undefined;
}
