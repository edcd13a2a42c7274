import { type ExecutionContext } from '@nestjs/common';
import { type Session } from '../session/session.js';

/** Fastify's guards and handlers see different wrappers of one raw request. */
const sessions = new WeakMap<object, Session>();

export function keepSession(context: ExecutionContext, session: Session): void {
  sessions.set(carrier(context), session);
}

export function sessionOf(context: ExecutionContext): Session | undefined {
  return sessions.get(carrier(context));
}

function carrier(context: ExecutionContext): object {
  const request = context.switchToHttp().getRequest<{ raw?: object }>();
  return request.raw ?? request;
}
