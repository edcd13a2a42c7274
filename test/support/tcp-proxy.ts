import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { type AddressInfo } from 'node:net';

/** Stands between an application and a server, and fails on request as networks do. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private readonly held: (() => void)[] = [];
  private readonly frozen = new WeakSet<Socket>();
  private up = true;
  private answers: 'pass' | 'swallow' | 'hold' = 'pass';
  /** Answers that were swallowed or held so far. */
  withheld = 0;
  /** Of the connection that has last sent what answers are withheld from. */
  sender: Socket | null = null;
  private trigger: { readonly sent: RegExp; readonly then: 'swallow' | 'hold' } | null = null;

  private constructor(
    private readonly server: Server,
    readonly url: string,
    private target: URL,
  ) {}

  /** @param target the address of the server; the proxy's `url` is the same but for host and port */
  static async start(target: string): Promise<TcpProxy> {
    const server = createServer((client) => proxy.pass(client));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = new URL(target);
    url.port = String((server.address() as AddressInfo).port);
    const proxy = new TcpProxy(server, url.href, new URL(target));
    return proxy;
  }

  /** What is connected at the moment. */
  connections(): readonly Socket[] {
    return [...this.sockets];
  }

  /** New connections go to another server, as when a name means another machine. */
  leadTo(target: string): void {
    this.target = new URL(target);
  }

  /** Breaks every connection, and each new one. */
  cut(): void {
    this.up = false;
    for (const socket of this.sockets) socket.destroy();
  }

  /**
   * From now on the server gets what is sent, and its answers are lost.
   * @param to only from the answer to a message with this in it on
   */
  swallowAnswers(to?: RegExp): void {
    if (to === undefined) this.answers = 'swallow';
    else this.trigger = { sent: to, then: 'swallow' };
  }

  /**
   * From now on nothing is heard of the server, and no connection breaks; `restore` brings the answers after all.
   * @param to only from the answer to a message with this in it on
   */
  holdAnswers(to?: RegExp): void {
    if (to === undefined) this.answers = 'hold';
    else this.trigger = { sent: to, then: 'hold' };
  }

  /** Nothing comes over the present connections any more, and none breaks; new ones work. */
  freeze(): void {
    for (const socket of this.sockets) this.frozen.add(socket);
  }

  restore(): void {
    this.up = true;
    this.answers = 'pass';
    this.trigger = null;
    for (const deliver of this.held.splice(0)) deliver();
  }

  async stop(): Promise<void> {
    this.cut();
    this.server.close();
    await once(this.server, 'close');
  }

  private pass(client: Socket): void {
    const server = connect(Number(this.target.port), this.target.hostname);
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
    client.on('data', (data) => {
      if (this.frozen.has(client)) return;
      if (this.trigger?.sent.test(data.toString('latin1'))) {
        this.answers = this.trigger.then;
        this.sender = client;
      }
      server.write(data);
    });
    server.on('data', (data) => {
      if (this.answers === 'pass' && !this.frozen.has(client)) {
        client.write(data);
        return;
      }
      this.withheld += 1;
      if (this.answers === 'hold') this.held.push(() => client.write(data));
    });
  }
}
