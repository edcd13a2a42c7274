import { type SessionsErrorBody } from './sessions-error-body.js';

/** What a resolver returns or throws: GraphQL's servers hand `message` and `extensions` to the client. */
export function toGraphQLError({ message, ...extensions }: SessionsErrorBody): Error {
  // Apollo shows the stack while an application is developed: this one says no more than the answer.
  return Object.assign(new Error(message), { extensions, stack: `${extensions.code}: ${message}` });
}
