import { type CallHandler, type ExecutionContext, Injectable, Logger, type NestInterceptor } from '@nestjs/common';
import { concatMap, dematerialize, materialize, type Observable, type ObservableNotification } from 'rxjs';
import { traceOf } from '../common/error-trace.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type RecordUse, takeUse } from './admitted-use.js';
import { handlerName } from './handler-name.js';

/**
 * Records what came of a handler with `@RequireTool()`, which brings it along, before the answer goes out: whoever has the answer
 * finds the plan moved on. Of a handler that streams, the first value says that it succeeded.
 */
@Injectable()
export class ToolUseInterceptor implements NestInterceptor {
  private readonly logger = new Logger(ToolUseInterceptor.name);

  /** @throws SessionsConfigurationError when nobody asked the plan */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const record = takeUse(context);
    if (!record) {
      throw new SessionsConfigurationError(
        `${handlerName(context)} requires a tool, and nobody has asked the plan whether it is allowed: ` +
          'add @UseGuards(SessionGuard, ToolGuard) to it.',
      );
    }
    return next.handle().pipe(
      materialize(),
      concatMap(async (said, at) => {
        if (at === 0) await this.record(record, said);
        return said;
      }),
      dematerialize(),
    );
  }

  private async record(record: RecordUse, { kind }: ObservableNotification<unknown>): Promise<void> {
    if (kind !== 'E') return record('succeeded');
    // What the handler threw matters more to the client.
    await record('failed').catch((error: unknown) => this.logger.error(traceOf(error)));
  }
}
