import { type ExecutionContext } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { handlerName } from './handler-name.js';
import { type IdPlace } from './transport.js';
import { transportOf } from './transport-of.js';

/**
 * Where an id stands. `data` is a body, a message's payload, or the arguments of a GraphQL field. A cookie needs the
 * application's cookie parser. Not every transport has each of them.
 */
export type IdSource = IdPlace | ((context: ExecutionContext) => string | undefined | Promise<string | undefined>);

const COOKIES = ' Cookies need a parser: app.use(cookieParser()) of cookie-parser, with Fastify @fastify/cookie.';

/**
 * What stands there, which may be no id; `undefined` where there is nothing.
 * @throws SessionsConfigurationError for a place that the transport does not have
 */
export async function readSource(context: ExecutionContext, source: IdSource): Promise<unknown> {
  const value = typeof source === 'function' ? await source(context) : valueAt(context, source);
  return value === '' || value === null ? undefined : value;
}

function valueAt(context: ExecutionContext, source: string): unknown {
  const transport = transportOf(context);
  const all = transport.parts(context);
  const parts = Object.entries(all).filter(([, part]) => part !== undefined);
  const [kind, name] = split(source);
  const part = parts.find(([each]) => each === kind)?.[1];
  if (part === undefined) {
    const kinds = parts.map(([each]) => each);
    // Others have no cookies at all.
    const cure = kind === 'cookie' && kind in all ? COOKIES : '';
    throw new SessionsConfigurationError(
      `${handlerName(context)} takes an id from ${source}, and ${transport.subject} has only these here: ${kinds.join(', ')}.${cure}`,
    );
  }
  // Whatever a client sends as its payload.
  if (typeof part !== 'object' || part === null || !Object.hasOwn(part, name)) return undefined;
  return (part as Readonly<Record<string, unknown>>)[name];
}

function split(source: string): [kind: string, name: string] {
  const at = source.indexOf(':');
  const kind = source.slice(0, at);
  const name = source.slice(at + 1);
  return [kind, kind === 'header' ? name.toLowerCase() : name];
}
