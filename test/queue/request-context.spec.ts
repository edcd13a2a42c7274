import { AsyncLocalStorage } from 'node:async_hooks';
import { InProcessQueue } from '../../lib/queue/in-process/in-process-queue.js';
import { eventually } from '../support/eventually.js';

it('TRN-20 visits a lane outside the asynchronous context of the request that notified it', async () => {
  const request = new AsyncLocalStorage<string>();
  const queue = new InProcessQueue(1);
  const seen: (string | undefined)[] = [];
  await queue.process(async () => void seen.push(request.getStore()));

  await request.run("ann's request", () => queue.notify('of-ann'));
  await request.run("bob's request", () => queue.notify('of-bob', 1));
  await eventually(() => seen.length === 2);

  expect(seen).toEqual([undefined, undefined]);
  await queue.close();
});
