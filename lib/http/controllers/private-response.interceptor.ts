import { type CallHandler, type ExecutionContext, type NestInterceptor, StreamableFile } from '@nestjs/common';
import { map, type Observable } from 'rxjs';
import { forbidCaching } from '../../transport/private-response.js';
import { type HttpResponse } from './http-response.js';

/** The metadata key of `@Sse()` in Nest. */
const SSE = '__sse__';

/**
 * Keeps responses of this package's controllers out of caches (FIX-76): their URLs identify neither the user nor the
 * session. `CacheInterceptor` of @nestjs/cache-manager ignores headers, but never stores a `StreamableFile`, whatever
 * its key.
 */
export class PrivateResponseInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    forbidCaching(context.switchToHttp().getResponse<HttpResponse>());
    const isStream = Reflect.getMetadata(SSE, context.getHandler()) === true;
    return next.handle().pipe(map(isStream ? toPrivateMessage : toPrivateBody));
  }
}

/** A body of JSON. Interceptors that wrap it in an object serialize it like the plain body. */
class PrivateBody extends StreamableFile {
  constructor(private readonly body: unknown) {
    super(Buffer.from(JSON.stringify(body)), { type: 'application/json; charset=utf-8' });
  }

  toJSON(): unknown {
    return this.body;
  }
}

function toPrivateBody(body: unknown): unknown {
  return body === undefined ? undefined : new PrivateBody(body);
}

/** Nest passes each message of a stream through the interceptors. It reads only the fields of the message. */
function toPrivateMessage(message: object): object {
  return Object.assign(Object.create(StreamableFile.prototype) as object, message);
}
