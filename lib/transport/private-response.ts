/** The value of `Cache-Control` for responses that belong to one user (FIX-76). */
export const PRIVATE = 'private, no-store';

/** Forbids caches to store the response of Express or Fastify. A handler can set another value. */
export function forbidCaching(response: { header(name: string, value: string): unknown }): void {
  response.header('Cache-Control', PRIVATE);
}
