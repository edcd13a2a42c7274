/** Fastify's guards and handlers see different wrappers of one raw request. */
export function rawRequest(request: object): object {
  const { raw } = request as { readonly raw?: unknown };
  // Others may keep what they like under this name.
  return typeof raw === 'object' && raw !== null && 'headers' in raw ? raw : request;
}
