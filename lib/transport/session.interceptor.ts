import { type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import { finalize, Observable } from 'rxjs';
import { requestSession, runForSession } from '../session/request-session.js';
import { keptSession, sessionOf } from './carried-session.js';

/**
 * Runs a handler with `@UseSession()` for the session that `SessionGuard` has read, so that its writes to another session
 * that gets the same id are rejected (FIX-90). `HandlerExplorer` adds this interceptor.
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
