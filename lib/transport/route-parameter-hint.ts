import { type ExecutionContext, Logger } from '@nestjs/common';
import { handlerName } from './transport.js';
import { transportMessages } from './transport.messages.js';

/** Logs once that a handler may mean a parameter of its route, if a request has no session id at the default place. */
export class RouteParameterHint {
  private readonly logger = new Logger('SessionGuard');
  private isLogged = false;

  logOnce(context: ExecutionContext, defaultPlace: string): void {
    if (this.isLogged || context.getType() !== 'http') return;
    const { params = {} } = context.switchToHttp().getRequest<{ readonly params?: object }>();
    const parameter = Object.keys(params).at(-1);
    if (parameter === undefined) return;
    this.isLogged = true;
    this.logger.warn(transportMessages.routeParameter(handlerName(context), defaultPlace, parameter));
  }
}
