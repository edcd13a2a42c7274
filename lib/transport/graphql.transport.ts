import { type ArgumentsHost } from '@nestjs/common';
import { type HttpRequest } from './http.transport.js';
import { type Transport } from './transport.js';

interface GraphQLContext {
  /** The request that the operation came with, as Nest's drivers keep it. */
  readonly req?: HttpRequest;
  readonly user?: unknown;
}

/** Where a field stands in the operation's result. */
interface FieldPath {
  readonly prev: FieldPath | undefined;
}

/**
 * The fields of an operation share its context and its request, so these keep nothing. A field's path is its own, and what
 * is resolved below a field knows it by its path.
 */
export const graphqlTransport: Transport = {
  subject: 'a GraphQL field',
  sessionAt: 'header:x-session-id',
  turnAt: 'data:turnId',
  userAt: 'context.req.user or context.user',

  parts(host) {
    const { args, context } = fieldOf(host);
    const { headers, query, cookies } = context?.req ?? {};
    return { header: headers, query, cookie: cookies, data: args };
  },

  user(host) {
    const { context } = fieldOf(host);
    return context?.req?.user ?? context?.user;
  },

  carriers(host) {
    const paths: FieldPath[] = [];
    for (let path: FieldPath | undefined = fieldOf(host).path; path; path = path.prev) paths.push(path);
    return paths;
  },
};

type FieldArguments = [args: unknown, context: GraphQLContext | undefined, info: { readonly path: FieldPath }];

/** From the end: what comes before is not the same for every kind of field. */
function fieldOf(host: ArgumentsHost): { args: unknown; context: GraphQLContext | undefined; path: FieldPath } {
  const [args, context, { path }] = host.getArgs().slice(-3) as FieldArguments;
  return { args, context, path };
}
