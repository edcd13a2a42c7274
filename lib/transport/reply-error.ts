import { HttpStatus } from '@nestjs/common';
import { type AbstractHttpAdapter } from '@nestjs/core';
import { type SessionsErrorBody } from './sessions-error-body.js';

/** Answers in the form that the client asks for, unless it was answered already: by a time limit, for one. */
export function replyError(
  httpAdapter: AbstractHttpAdapter,
  { headers }: { readonly headers: { readonly accept?: string } },
  response: object,
  body: SessionsErrorBody,
): void {
  if (httpAdapter.isHeadersSent(response)) return;
  if (body.statusCode === Number(HttpStatus.NO_CONTENT)) {
    httpAdapter.reply(response, undefined, body.statusCode);
    return;
  }
  if (body.retryAfter !== undefined) httpAdapter.setHeader(response, 'Retry-After', String(body.retryAfter));
  if (headers.accept?.includes('application/problem+json')) {
    httpAdapter.setHeader(response, 'Content-Type', 'application/problem+json');
    // As text: Nest 11 makes application/json of any object that is answered as an error on Express.
    httpAdapter.reply(response, JSON.stringify(toProblem(body)), body.statusCode);
  } else {
    httpAdapter.reply(response, body, body.statusCode);
  }
}

/** RFC 9457, for clients that ask for it. */
function toProblem({ statusCode, message, ...rest }: SessionsErrorBody): object {
  return { type: 'about:blank', title: rest.code, status: statusCode, detail: message, ...rest };
}
