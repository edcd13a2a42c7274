import { type ExecutionContext, Logger } from '@nestjs/common';
import { handlerName } from './transport.js';
import { transportMessages } from './transport.messages.js';

/** Logs what developers often miss if `SessionGuard` rejects a request, each once per process: clients see only 400 or 404. */
export class GuardHints {
  private readonly logger = new Logger('SessionGuard');
  private readonly logged = new Set<string>();

  /** A handler may mean a parameter of its route. @param defaultPlace where the request has no session id */
  routeParameter(context: ExecutionContext, defaultPlace: string): void {
    if (context.getType() !== 'http') return;
    const { params = {} } = context.switchToHttp().getRequest<{ readonly params?: object }>();
    const parameter = Object.keys(params).at(-1);
    if (parameter === undefined) return;
    this.logOnce('routeParameter', () =>
      transportMessages.routeParameter(handlerName(context), defaultPlace, parameter),
    );
  }

  /** The session may have been created with another id of the user than the request has. Names no session. */
  otherOwner(context: ExecutionContext): void {
    this.logOnce('otherOwner', () => transportMessages.otherOwner(handlerName(context)));
  }

  private logOnce(hint: string, message: () => string): void {
    if (this.logged.has(hint)) return;
    this.logged.add(hint);
    this.logger.warn(message());
  }
}
