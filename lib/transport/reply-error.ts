import { HttpStatus } from '@nestjs/common';
import { type AbstractHttpAdapter } from '@nestjs/core';
import { PRIVATE } from './private-response.js';
import { type SessionsErrorBody } from '../common/sessions-error-body.js';

/**
 * Sends the error in the format that the client accepts, unless a response was already sent, for example by a timeout.
 */
export function replyError(
  httpAdapter: AbstractHttpAdapter,
  { headers }: { readonly headers: { readonly accept?: string } },
  response: object,
  body: SessionsErrorBody,
): void {
  if (httpAdapter.isHeadersSent(response)) return;
  // Without it, a shared cache may store a 404 or 410.
  httpAdapter.setHeader(response, 'Cache-Control', PRIVATE);
  if (body.statusCode === Number(HttpStatus.NO_CONTENT)) {
    httpAdapter.reply(response, undefined, body.statusCode);
    return;
  }
  if (body.retryAfter !== undefined) httpAdapter.setHeader(response, 'Retry-After', String(body.retryAfter));
  if (headers.accept?.includes('application/problem+json')) {
    httpAdapter.setHeader(response, 'Content-Type', 'application/problem+json');
    // The body is sent as a string, because Nest 11 on Express sends every object of an error as application/json.
    httpAdapter.reply(response, JSON.stringify(toProblem(body)), body.statusCode);
  } else {
    httpAdapter.reply(response, body, body.statusCode);
  }
}

/** Formats the body by RFC 9457, for clients that accept it. */
function toProblem({ statusCode, message, ...rest }: SessionsErrorBody): object {
  return { type: 'about:blank', title: rest.code, status: statusCode, detail: message, ...rest };
}
