import { type CanActivate, createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { EMPTY, type Observable } from 'rxjs';
import { rawRequest } from '../../transport/http.transport.js';
import { type HttpRequest } from './http-request.js';
import { type HttpResponse, rawResponse } from './http-response.js';

const streams = new WeakMap<object, Observable<unknown>>();

/**
 * Opens the stream of an `@Sse()` handler, which returns it with {@link OpenedStream}. The handler itself would be too
 * late: behind an interceptor of the application, Nest sends the headers before an asynchronous handler has resolved, so
 * the handler could neither set a header nor fail with a status.
 */
export abstract class StreamGuard implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<HttpRequest>();
    const stream = await this.open(context, request, rawResponse(http.getResponse<HttpResponse>()));
    // A HEAD response ends after its headers; the client reuses the connection.
    streams.set(rawRequest(request), request.method === 'HEAD' ? EMPTY : stream);
    return true;
  }

  /** Returns the stream. It must not hold resources before it is subscribed to. */
  protected abstract open(
    context: ExecutionContext,
    request: HttpRequest,
    response: ReturnType<typeof rawResponse>,
  ): Promise<Observable<unknown>>;
}

/** Injects the stream that a {@link StreamGuard} opened. */
export const OpenedStream = createParamDecorator((_: unknown, context: ExecutionContext) =>
  streams.get(rawRequest(context.switchToHttp().getRequest())),
);
