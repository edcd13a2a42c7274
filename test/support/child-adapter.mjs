/**
 * Returns the adapter for the store options that a test gives to its program. It loads only that store: what a program loads takes most of
 * the processor time of its start.
 */
export async function adapterOf(options) {
  if ('dataSource' in options) {
    const { typeormAdapter } = await import('nestjs-agent-sessions/typeorm');
    return typeormAdapter(options);
  }
  const { redisAdapter } = await import('nestjs-agent-sessions/redis');
  return redisAdapter(options);
}
