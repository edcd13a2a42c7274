import { type ArgumentsHost } from '@nestjs/common';
import { type RequestFields } from './http.transport.js';
import { type Transport } from './transport.js';

interface GraphQLContext {
  /** The request of the operation, as Nest's drivers store it. */
  readonly req?: RequestFields;
  readonly user?: unknown;
}

/** The path of a field in the operation's result. */
interface FieldPath {
  readonly prev: FieldPath | undefined;
}

/**
 * Fields of an operation share its context and request, so nothing is stored there. Data is stored per field path, and
 * resolvers below a field find it by that path.
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

/** Reads from the end, because the first arguments depend on the kind of the field. */
function fieldOf(host: ArgumentsHost): { args: unknown; context: GraphQLContext | undefined; path: FieldPath } {
  const [args, context, { path }] = host.getArgs().slice(-3) as FieldArguments;
  return { args, context, path };
}
