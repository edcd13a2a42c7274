import 'reflect-metadata';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request as send } from 'node:http';
import { connect, type Socket } from 'node:net';
import { capturingLogger } from '../support/capturing-logger.js';
import { type ChatApp, chunksOf, said, startChatApp } from './chat-app.js';
import { echo } from './chat-echo.js';
import { PLATFORMS } from './http-app.js';

const TEXT = { 'content-type': 'text/plain', 'x-user-id': 'ann' };
/** A chunk of a body. */
const MEGABYTE = Buffer.alloc(1_000_000, 'x');

describe.each(PLATFORMS)('text bodies of the chat controller on $name', (platform) => {
  it('AIS-13 keeps the connection usable for other requests after a body that is too large', async () => {
    const app = await startChatApp({ platform, orchestrators: [echo().orchestrator] });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const size of [5_000_000, 20_000_000, 39_000_000]) {
      const body = JSON.stringify({ message: said('x'.repeat(size)) });
      expect(await ask(app, agent, 'POST', '/one', body)).toEqual([413, expect.stringContaining('TOO_LARGE')]);
      expect(await ask(app, agent, 'GET', '/one/messages')).toEqual([200, '{"messages":[]}']);
    }
    agent.destroy();
  });

  it('AIS-13 closes the connection of a body without an end', async () => {
    const app = await startChatApp({ platform, orchestrators: [echo().orchestrator] });
    const socket = open(app, 1e12);
    const closed = ended(socket);
    while (!socket.destroyed) {
      if (!socket.write(MEGABYTE))
        await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed]);
    }
    expect(socket.bytesWritten).toBeLessThan(100_000_000);
  });

  it('AIS-19 logs no fault if the client leaves during the upload', async () => {
    const { lines, logger } = capturingLogger();
    const { orchestrator } = echo();
    const app = await startChatApp({
      platform,
      orchestrators: [orchestrator],
      configure: (nest) => nest.useLogger(logger),
    });
    const arrived = once(app.app.getHttpServer(), 'request');
    const socket = open(app, 1000);
    const [request] = (await arrived) as [IncomingMessage];
    const left = ended(request);
    socket.destroy();
    await left;
    // Another request ends after the error of this one was handled.
    await chunksOf(await app.ask('POST', '/one', { body: { message: said('Hi') } }));
    expect(lines.filter((line) => !line.startsWith('log '))).toEqual([]);
  });
});

/** Sends a request. @returns the status and the body of the response */
function ask(app: ChatApp, agent: Agent, method: string, path: string, body?: string): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const request = send(`${app.url}${path}`, { method, agent, headers: TEXT }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => resolve([response.statusCode!, text]));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** Resolves when a connection is closed, also by a reset. */
function ended(stream: Socket | IncomingMessage): Promise<void> {
  stream.on('error', () => undefined);
  return new Promise((resolve) => stream.once('close', () => resolve()));
}

/** Begins a request whose body has a length. */
function open({ url }: ChatApp, length: number): Socket {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(`POST /chat/one HTTP/1.1\r\nhost: ${hostname}\r\nx-user-id: ann\r\n`);
  socket.write(`content-type: text/plain\r\ncontent-length: ${length}\r\n\r\n{"message"`);
  return socket;
}
