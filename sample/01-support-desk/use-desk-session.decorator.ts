import { type ExecutionContext } from '@nestjs/common';
import { UseSession } from 'nestjs-agent-sessions';
import { type SampleRequest } from './header-auth.guard.js';
import { cookieOf, SESSION_COOKIE } from './page-cookies.js';

/**
 * The session that the request names: the page by a cookie, everybody else by a header. It is not touched by being looked at;
 * a turn touches its session when it settles.
 */
export const UseDeskSession = (): ClassDecorator & MethodDecorator => UseSession({ from: sessionIdOf, touch: false });

function sessionIdOf(context: ExecutionContext): string | undefined {
  const { headers } = context.switchToHttp().getRequest<SampleRequest>();
  return headers['x-session-id']?.toString() ?? cookieOf(headers, SESSION_COOKIE);
}
