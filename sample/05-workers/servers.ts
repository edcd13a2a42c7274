/**
 * The servers of the application: those in REDIS_URL and DATABASE_URL, or private ones. They run in a separate process that Ctrl-C does not
 * reach, because they must stop last.
 */
import { notifyParent, parentEnded } from './parent-process.js';
import { type Server, startPostgres, startRedis } from './private-servers.js';

const SERVERS: Readonly<Record<string, () => Promise<Server>>> = {
  redis: () => given(process.env.REDIS_URL) ?? startRedis(),
  postgres: () => given(process.env.DATABASE_URL) ?? startPostgres(),
};
const names = process.argv.slice(2);
const started = await Promise.allSettled(names.map((name) => SERVERS[name]()));
const running = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
const failed = started.find((each) => each.status === 'rejected');

if (!failed) {
  notifyParent(Object.fromEntries(names.map((name, i) => [name, running[i].url])));
  await parentEnded();
}
await Promise.all(running.map(({ stop }) => stop()));
if (failed) throw failed.reason;

/** Returns your server, which nothing here stops. */
function given(url: string | undefined): Promise<Server> | undefined {
  return url ? Promise.resolve({ url, stop: () => Promise.resolve() }) : undefined;
}
