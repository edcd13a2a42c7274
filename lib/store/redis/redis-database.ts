import { type RedisClient } from './redis-adapter.options.js';
import { type RedisConnection } from './redis-connection.js';
import { isUnknownScript } from './redis-errors.js';
import { granted, type Reply } from './redis-refusals.js';
import { type Script } from './redis-scripts.js';

/** Runs our scripts: one round trip and one atomic operation each. */
export class RedisDatabase {
  constructor(
    /** Before every key, with the tag that keeps them together. */
    private readonly base: string,
    /** @throws StoreUnavailableError while it is not open */
    private readonly connection: () => RedisConnection,
  ) {}

  /** @throws StoreUnavailableError; the typed error that the script refused with */
  async run<T extends readonly unknown[]>(script: Script, ...args: readonly (string | number)[]): Promise<T> {
    const connection = this.connection();
    const evaluate = (): Promise<Reply> => this.evaluate(connection.client, script, args);
    return granted(await (script.writes ? connection.write(evaluate) : connection.read(evaluate)));
  }

  private async evaluate(
    client: RedisClient,
    { sha, lua }: Script,
    args: readonly (string | number)[],
  ): Promise<Reply> {
    try {
      return (await client.evalsha(sha, 1, this.base, ...args)) as Reply;
    } catch (error) {
      // Redis forgets scripts when it starts again, or on SCRIPT FLUSH.
      if (!isUnknownScript(error)) throw error;
      return (await client.eval(lua, 1, this.base, ...args)) as Reply;
    }
  }
}
