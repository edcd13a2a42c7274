import { type CanActivate, type ExecutionContext, Injectable, Logger } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { transportMessages } from './transport.messages.js';

/**
 * Sets the user of every HTTP request to one fixed user with the id `single-user`, for development on your machine (DAY-01).
 * It checks no credentials, which it logs at the start. If NODE_ENV is `production`, the application does not start.
 */
@Injectable()
export class SingleUserGuard implements CanActivate {
  /** @throws SessionsConfigurationError in production */
  constructor() {
    if (process.env.NODE_ENV !== 'production') {
      new Logger(SingleUserGuard.name).warn(
        'Every request is let in as the same user. Use this guard only on your machine.',
      );
      return;
    }
    throw new SessionsConfigurationError(transportMessages.singleUserInProduction());
  }

  /** Sets the user of the request. @throws SessionsConfigurationError for a context other than HTTP */
  canActivate(context: ExecutionContext): boolean {
    const type = context.getType<string>();
    if (type !== 'http') throw new SessionsConfigurationError(transportMessages.singleUserWithoutHttp(type));
    context.switchToHttp().getRequest<{ user?: object }>().user = { id: 'single-user' };
    return true;
  }
}
