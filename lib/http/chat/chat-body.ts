import { type IncomingMessage } from 'node:http';
import { PayloadTooLargeException } from '@nestjs/common';
import { isFields } from '../../common/json.js';
import { InvalidInputError } from '../../common/sessions.error.js';
import { rawRequest } from '../../transport/http.transport.js';
import { type HttpRequest } from '../controllers/http-request.js';
import { incompleteBody, unsupportedMediaType } from '../http.errors.js';
import { httpMessages } from '../http.messages.js';

/** The maximum size of a text body in bytes. By default, Express does not parse text, so it sets no limit. */
const MAX_TEXT_BYTES = 4_194_304;
/** The size of a body from which on its connection is closed. The rest of a smaller one is read, and not stored. */
const MAX_READ_BYTES = 10 * MAX_TEXT_BYTES;

/**
 * Returns the JSON of a request. `WorkflowChatTransport` sends it as text (AIS-13). A page of another site can send
 * text, too, without a preflight request of the browser. So text is accepted only from the application's own pages.
 * @throws InvalidInputError, PayloadTooLargeException
 */
export async function readJson(request: HttpRequest): Promise<unknown> {
  const media = String(request.headers['content-type'] ?? '');
  if (/^application\/json\s*(;|$)/i.test(media)) return request.body;
  if (!/^text\/plain\s*(;|$)/i.test(media) || isOfOtherSite(request)) throw unsupportedMediaType();
  const text = typeof request.body === 'string' ? request.body : await textOf(rawRequest(request) as IncomingMessage);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new InvalidInputError('body', 'must be JSON.');
  }
}

/**
 * Returns the JSON of a request as {@link readJson}, or `undefined` if it has no body. A page of another site can send no
 * body without a preflight request, too.
 * @throws as `readJson`
 */
export async function readOptionalJson(request: HttpRequest): Promise<unknown> {
  const { headers, body } = request;
  const isSent = headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
  // Over HTTP/2, a body may have neither header. Without a body, some parsers return an empty object.
  if (isSent || (isFields(body) && Object.keys(body).length > 0)) return readJson(request);
  if (isOfOtherSite(request)) throw unsupportedMediaType();
  return undefined;
}

/** Clients that are not browsers send neither header. */
function isOfOtherSite({ headers }: HttpRequest): boolean {
  const { 'sec-fetch-site': site, origin, host } = headers;
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  return origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === host);
}

/** Reads the body. On Fastify, a text parser has read it before, with the limit `bodyLimit`. */
async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes <= MAX_TEXT_BYTES) chunks.push(chunk);
      // Leaving the loop would break a connection that a proxy may use for its next request. So it is closed instead.
      else if (bytes > MAX_READ_BYTES) request.destroy();
    }
  } catch (error) {
    if (bytes <= MAX_TEXT_BYTES) throw request.destroyed ? incompleteBody() : error;
  }
  if (bytes > MAX_TEXT_BYTES) throw new PayloadTooLargeException(httpMessages.textTooLarge());
  return Buffer.concat(chunks).toString();
}
