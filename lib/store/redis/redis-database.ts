import { type RedisClient } from './redis-adapter.options.js';
import { type RedisConnection } from './redis-connection.js';
import { isUnknownScript } from './redis-errors.js';
import { granted, type Reply } from './redis-refusals.js';
import { type Script } from './redis-scripts.js';

/** Runs the adapter's scripts. Each is one round trip and one atomic operation. */
export class RedisDatabase {
  constructor(
    /** The prefix of every key, including the hash tag. */
    private readonly base: string,
    /** @throws StoreUnavailableError if the connection is not open */
    private readonly connection: () => RedisConnection,
  ) {}

  /** @throws StoreUnavailableError, or the typed error of the script's refusal */
  async run<T extends readonly unknown[]>(script: Script, ...args: readonly (string | number)[]): Promise<T> {
    const connection = this.connection();
    const evaluate = (): Promise<Reply> => {
      connection.assertFits(args);
      return this.evaluate(connection.client, script, args);
    };
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
      // Redis loses its script cache on a restart or SCRIPT FLUSH.
      if (!isUnknownScript(error)) throw error;
      return (await client.eval(lua, 1, this.base, ...args)) as Reply;
    }
  }
}
