import { type ExecutionContext } from '@nestjs/common';
import { type Session } from '../session/session.js';
import { rawRequest } from '../http/raw-request.js';

const sessions = new WeakMap<object, Session>();

export function keepSession(context: ExecutionContext, session: Session): void {
  sessions.set(carrier(context), session);
}

export function sessionOf(context: ExecutionContext): Session | undefined {
  return sessions.get(carrier(context));
}

function carrier(context: ExecutionContext): object {
  return rawRequest(context.switchToHttp().getRequest());
}
