import { timingSafeEqual } from 'node:crypto';
import { type IncomingMessage, type ServerResponse } from 'node:http';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { type INestApplication } from '@nestjs/common';
import { TURN_QUEUE } from 'nestjs-agent-sessions';
import { type BullmqQueue } from 'nestjs-agent-sessions/bullmq';

const PATH = '/queues';

/** Bull Board for the notifications of the lanes, read-only. Any user name works with the token as password. */
export async function mountQueueBoard(app: INestApplication, token: string): Promise<void> {
  const queue = await app.get<BullmqQueue>(TURN_QUEUE, { strict: false }).queue;
  const board = new ExpressAdapter().setBasePath(PATH);
  createBullBoard({ queues: [new BullMQAdapter(queue, { readOnlyMode: true })], serverAdapter: board });
  app.use(PATH, askFor(token), board.getRouter());
}

/** Middleware, because a Nest guard protects controllers only, not an Express router. */
function askFor(token: string) {
  return ({ headers }: IncomingMessage, response: ServerResponse, next: () => void): void => {
    if (isSame(passwordIn(headers.authorization), token)) return next();
    response.writeHead(401, { 'www-authenticate': 'Basic realm="queues"' }).end();
  };
}

function passwordIn(authorization = ''): string {
  const credentials = /^Basic (.+)$/i.exec(authorization)?.[1] ?? '';
  return Buffer.from(credentials, 'base64')
    .toString()
    .replace(/^[^:]*:/, '');
}

function isSame(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
