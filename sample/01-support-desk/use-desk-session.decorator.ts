import { type ExecutionContext } from '@nestjs/common';
import { UseSession } from 'nestjs-agent-sessions';
import { type SampleRequest } from './header-auth.guard.js';
import { cookieOf, SESSION_COOKIE } from './page-cookies.js';

/**
 * Loads the session of the request: from a cookie for the page, from a header for other clients. Loading does not touch the session; a turn
 * touches it when it settles.
 */
export const UseDeskSession = (): ClassDecorator & MethodDecorator => UseSession({ from: sessionIdOf, touch: false });

function sessionIdOf(context: ExecutionContext): string | undefined {
  const { headers } = context.switchToHttp().getRequest<SampleRequest>();
  return headers['x-session-id']?.toString() ?? cookieOf(headers, SESSION_COOKIE);
}
