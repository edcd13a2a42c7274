/** Starts one API, two workers and their servers. See the README in this folder. */
import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { SupervisedProcess } from './supervised-process.js';

const { values } = parseArgs({
  options: { store: { type: 'string', default: 'redis' }, queue: { type: 'string', default: 'redis' } },
});
const { store, queue } = values;
for (const name of [store, queue]) {
  if (name !== 'redis' && name !== 'postgres') throw new Error(`${name} is neither redis nor postgres.`);
}

const token = process.env.QUEUES_TOKEN ?? randomBytes(8).toString('hex');
const asked = new Promise((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, resolve);
});

const names = [...new Set([store, queue])];
const servers = new SupervisedProcess({ name: 'servers', program: './servers.js', args: names, restart: false });
const urls = (await servers.start()) as Record<string, string>;

const shared = { STORE_URL: urls[store], QUEUE_URL: urls[queue], QUEUES_TOKEN: token };
const processOf = (name: string, ROLE: string): SupervisedProcess =>
  new SupervisedProcess({ name, program: './main.js', env: { ...shared, ROLE, PROCESS_NAME: name } });
const api = processOf('api', 'submit');
const workers = [processOf('worker 1', 'work'), processOf('worker 2', 'work')];

const { url } = (await api.start()) as { url: string };
await Promise.all(workers.map((worker) => worker.start()));
console.log(`
One API and two workers run; the API listens on ${url}. Try:

  SESSION=$(curl -s -X POST ${url}/sessions -H 'x-user-id: ann' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')
  curl -s -X POST ${url}/answers -H 'x-user-id: ann' -H "x-session-id: $SESSION" -H 'content-type: application/json' -d '{"input":"Hello"}'

Bull Board is at ${url}/queues, the password is ${token}. To watch lanes, from another terminal:

  npm run load:workers -- --kill${url.endsWith(':3000') ? '' : ` --url ${url}`}
`);

await asked;
console.log('Stopping: first the API, then the workers, then the servers.');
await api.stop();
await Promise.all(workers.map((worker) => worker.stop()));
await servers.stop();
console.log('Stopped.');
