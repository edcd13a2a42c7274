import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { type AddressInfo } from 'node:net';

/** Stands between an application and a server, and fails on request as networks do. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private up = true;
  private swallows = false;

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  /** @param target the address of the server; the proxy's `url` is the same but for host and port */
  static async start(target: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(target);
    const server = createServer((client) => proxy.pass(client, connect(Number(port), hostname)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = new URL(target);
    url.port = String((server.address() as AddressInfo).port);
    const proxy = new TcpProxy(server, url.href);
    return proxy;
  }

  /** Breaks every connection, and each new one. */
  cut(): void {
    this.up = false;
    for (const socket of this.sockets) socket.destroy();
  }

  /** From now on the server gets what is sent, and its answers are lost. */
  swallowAnswers(): void {
    this.swallows = true;
  }

  restore(): void {
    this.up = true;
    this.swallows = false;
  }

  async stop(): Promise<void> {
    this.cut();
    this.server.close();
    await once(this.server, 'close');
  }

  private pass(client: Socket, server: Socket): void {
    for (const [socket, peer] of [
      [client, server],
      [server, client],
    ]) {
      this.sockets.add(socket);
      socket.on('error', () => peer.destroy());
      socket.on('close', () => {
        this.sockets.delete(socket);
        peer.destroy();
      });
    }
    if (!this.up) client.destroy();
    client.on('data', (data) => server.write(data));
    server.on('data', (data) => this.swallows || client.write(data));
  }
}
