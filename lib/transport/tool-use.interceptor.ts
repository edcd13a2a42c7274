import { type CallHandler, type ExecutionContext, Injectable, Logger, type NestInterceptor } from '@nestjs/common';
import { concatMap, dematerialize, materialize, type Observable, type ObservableNotification } from 'rxjs';
import { traceOf } from '../common/error-trace.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type RecordUse, takeDeferredUse } from './admitted-use.js';
import { handlerName } from './transport.js';
import { transportMessages } from './transport.messages.js';

/**
 * Admits the use of a handler with `@RequireTool()` before the handler runs (FIX-21), and records its outcome before the answer is
 * sent. A handler that streams has succeeded with its first value. `@RequireTool()` adds this interceptor.
 */
@Injectable()
export class ToolUseInterceptor implements NestInterceptor {
  private readonly logger = new Logger(ToolUseInterceptor.name);

  /** @throws ToolNotAllowedError; SessionsConfigurationError for a handler without ToolGuard */
  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const admit = takeDeferredUse(context);
    if (!admit) throw new SessionsConfigurationError(transportMessages.noToolGuard(handlerName(context)));
    const record = await admit();
    return next.handle().pipe(
      materialize(),
      concatMap(async (notification, at) => {
        if (at === 0) await this.record(record, notification);
        return notification;
      }),
      dematerialize(),
    );
  }

  private async record(record: RecordUse, { kind }: ObservableNotification<unknown>): Promise<void> {
    if (kind !== 'E') {
      await record('succeeded');
      return;
    }
    // The client receives the handler's error, which matters more.
    await record('failed').catch((error: unknown) => this.logger.error(traceOf(error)));
  }
}
