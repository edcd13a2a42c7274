import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Stands between an application and a server, and fails on request as networks do. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private readonly held: (() => void)[] = [];
  /** Once something came late, the rest must not overtake it. */
  private readonly isLate = new WeakSet<Socket>();
  private readonly frozen = new WeakSet<Socket>();
  private up = true;
  private answers: 'pass' | 'swallow' | 'hold' = 'pass';
  /** Answers that were swallowed or held so far. */
  withheld = 0;
  /** Of the connection that has last sent what answers are withheld from. */
  sender: Socket | null = null;
  /** What is sent over a present connection next is cut in the middle, and the connection breaks. */
  private readonly truncated = new WeakSet<Socket>();
  /** Milliseconds that everything takes longer, in both directions. */
  latencyMs = 0;
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

  /** The next piece that comes over each of the present connections is half, and then the connection is gone. */
  truncate(): void {
    for (const socket of this.sockets) this.truncated.add(socket);
  }

  restore(): void {
    this.up = true;
    this.latencyMs = 0;
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
    const toServer = this.line(server);
    const toClient = this.line(client);
    client.on('data', (data) => {
      if (this.frozen.has(client)) return;
      if (this.trigger?.sent.test(data.toString('latin1'))) {
        this.answers = this.trigger.then;
        this.sender = client;
      }
      toServer(data);
    });
    server.on('data', (data) => {
      if (this.answers === 'pass' && !this.frozen.has(client)) {
        toClient(data);
        return;
      }
      this.withheld += 1;
      if (this.answers === 'hold') this.held.push(() => toClient(data));
    });
  }

  /** What comes out at the other end in the order in which it went in, sooner or later. */
  private line(to: Socket): (data: Buffer) => void {
    let last = Promise.resolve();
    const deliver = (data: Buffer): void => {
      if (!this.truncated.has(to)) {
        to.write(data);
        return;
      }
      to.write(data.subarray(0, data.length >> 1));
      to.destroySoon();
    };
    return (data) => {
      if (this.latencyMs === 0 && !this.isLate.has(to)) return deliver(data);
      this.isLate.add(to);
      const due = delay(this.latencyMs);
      last = last.then(() => due).then(() => deliver(data));
    };
  }
}
