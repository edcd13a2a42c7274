import { type ServerResponse } from 'node:http';
import { type CallHandler, createParamDecorator, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import { finalize, Observable } from 'rxjs';
import { enterSession, requestSession, runForSession } from '../session/request-session.js';
import { keptSession, sessionOf } from './carried-session.js';

/**
 * Runs a handler with `@UseSession()` for the session that `SessionGuard` has read, so that its writes to another session
 * that gets the same id are rejected (FIX-90). `HandlerExplorer` adds this interceptor, except to an `@Sse()` handler
 * without other interceptors.
 */
export class SessionInterceptor implements NestInterceptor {
  /** @param requiresGuard rejects requests for which the guard did not run */
  constructor(private readonly requiresGuard = false) {}

  /** @throws SessionsConfigurationError */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (this.requiresGuard) sessionOf(context, 'has @UseSession()');
    const kept = keptSession(context);
    // It runs twice if the class and the handler have it.
    if (!kept || requestSession(kept.store)(kept.session.id)) return next.handle();
    const { store, session } = kept;
    // Subscribe inside: the subscription calls the handler, and starts the observable that it may return.
    return new Observable((subscriber) =>
      runForSession(store, session, (end) => next.handle().pipe(finalize(end)).subscribe(subscriber)),
    );
  }
}

/**
 * Does the same for an `@Sse()` handler. Behind an interceptor, Nest sends the headers before an asynchronous handler has
 * resolved, so the handler could neither fail with a status nor set a header. Nest reads parameters in the asynchronous
 * context in which it calls the handler and subscribes to its stream.
 */
const EnteredSession = createParamDecorator((_: unknown, context: ExecutionContext): void => {
  const kept = keptSession(context);
  if (!kept) return;
  const response = context.switchToHttp().getResponse<ServerResponse & { readonly raw?: ServerResponse }>();
  (response.raw ?? response).once('close', enterSession(kept.store, kept.session));
});

/** Adds the parameter. Its index adds no argument to the call of the handler. */
export function enterSessionOf(prototype: object, method: string | symbol): void {
  EnteredSession()(prototype, method, -1);
}
