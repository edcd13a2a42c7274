import { createServer, type AddressInfo, type Server } from 'node:net';
import { once } from 'node:events';

/** AuthenticationOk, ReadyForQuery, and the error of a server that is shutting down, in one message. */
const GREETING_AND_GOODBYE = Buffer.concat([
  message('R', Buffer.from([0, 0, 0, 0])),
  message('Z', Buffer.from('I')),
  message('E', Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')),
]);

function message(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

/** A PostgreSQL server that shuts down just after each connect. */
export class ClosingPostgres {
  /** Number of connections so far. */
  connections = 0;

  private constructor(private readonly server: Server) {
    server.on('connection', (socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        this.connections += 1;
        socket.end(GREETING_AND_GOODBYE);
      });
    });
  }

  static async start(): Promise<ClosingPostgres> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new ClosingPostgres(server);
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${(this.server.address() as AddressInfo).port}/postgres`;
  }

  async stop(): Promise<void> {
    this.server.close();
    await once(this.server, 'close');
  }
}
