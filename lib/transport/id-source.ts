import { type ExecutionContext } from '@nestjs/common';
import { shown } from '../common/check-options.js';
import { closestOf } from '../common/known-keys.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { transportOf } from './transport-of.js';
import { handlerName, type IdPlace, SOURCE_KINDS } from './transport.js';
import { transportMessages } from './transport.messages.js';

/**
 * The location of an id. `data` is a body, a message's payload, or the arguments of a GraphQL field. A cookie requires
 * the application's cookie parser. Not every transport supports every location.
 */
export type IdSource = IdPlace | ((context: ExecutionContext) => string | undefined | Promise<string | undefined>);

/** Names of the same location in other libraries. */
const OTHER_NAMES = new Map([
  ['body', 'data'],
  ['payload', 'data'],
  ['args', 'data'],
]);

/**
 * Checks the option `from` of a decorator, so that a mistake stops the start instead of failing each request (DAY-04).
 * @param place the class or the method that is decorated
 * @throws SessionsConfigurationError
 */
export function assertSource(place: string, decorator: string, source: unknown): void {
  if (source === undefined || source === null || typeof source === 'function') return;
  const [kind, name] = typeof source === 'string' ? split(source) : ['', ''];
  if (SOURCE_KINDS.some((known) => known === kind) && name !== '') return;
  const close = OTHER_NAMES.get(kind) ?? closestOf(kind, SOURCE_KINDS);
  const suggestion = close === undefined || name === '' ? '' : ` Did you mean '${close}:${name}'?`;
  throw new SessionsConfigurationError(
    `${transportMessages.wrongSource(place, decorator, SOURCE_KINDS, shown(source))}${suggestion}`,
  );
}

/**
 * Returns the unvalidated value at the location; `undefined` if none exists.
 * @throws SessionsConfigurationError if the transport does not support the location
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
    // Other transports have no cookies at all.
    const cure = kind === 'cookie' && kind in all ? ` ${transportMessages.cookiesCure()}` : '';
    throw new SessionsConfigurationError(
      `${transportMessages.missingSource(handlerName(context), source, transport.subject, kinds)}${cure}`,
    );
  }
  // The payload comes from the client and may have any type.
  if (typeof part !== 'object' || part === null || !Object.hasOwn(part, name)) return undefined;
  return (part as Readonly<Record<string, unknown>>)[name];
}

function split(source: string): [kind: string, name: string] {
  const at = source.indexOf(':');
  if (at === -1) return [source, ''];
  const kind = source.slice(0, at);
  const name = source.slice(at + 1);
  return [kind, kind === 'header' ? name.toLowerCase() : name];
}
