import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A proxy between an application and a server that simulates network failures. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private readonly held: (() => void)[] = [];
  /** True after a delayed message, which later messages must not overtake. */
  private readonly isLate = new WeakSet<Socket>();
  private readonly frozen = new WeakSet<Socket>();
  private up = true;
  private answers: 'pass' | 'swallow' | 'hold' = 'pass';
  /** Number of answers that were swallowed or held so far. */
  withheld = 0;
  /** The connection whose answers were withheld last. */
  sender: Socket | null = null;
  /** True if the next message is cut in the middle and the connection breaks. */
  private readonly truncated = new WeakSet<Socket>();
  /** Milliseconds of delay in both directions. */
  latencyMs = 0;
  private trigger: { readonly sent: RegExp; readonly then: 'swallow' | 'hold' } | null = null;

  private constructor(
    private readonly server: Server,
    readonly url: string,
    private target: URL,
  ) {}

  /** @param target the address of the server; the proxy's `url` differs in host and port */
  static async start(target: string): Promise<TcpProxy> {
    const server = createServer((client) => proxy.pass(client));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = new URL(target);
    url.port = String((server.address() as AddressInfo).port);
    const proxy = new TcpProxy(server, url.href, new URL(target));
    return proxy;
  }

  /** The open connections. */
  connections(): readonly Socket[] {
    return [...this.sockets];
  }

  /** Sends new connections to another server, like a DNS change. */
  leadTo(target: string): void {
    this.target = new URL(target);
  }

  /** Breaks every open and new connection. */
  cut(): void {
    this.up = false;
    for (const socket of this.sockets) socket.destroy();
  }

  /**
   * Delivers requests from now on and drops the answers.
   * @param to starts with the answer to a message that matches this
   */
  swallowAnswers(to?: RegExp): void {
    if (to === undefined) this.answers = 'swallow';
    else this.trigger = { sent: to, then: 'swallow' };
  }

  /**
   * Holds back all answers from now on without breaking connections. `restore` delivers them.
   * @param to starts with the answer to a message that matches this
   */
  holdAnswers(to?: RegExp): void {
    if (to === undefined) this.answers = 'hold';
    else this.trigger = { sent: to, then: 'hold' };
  }

  /** Makes the open connections silent without breaking them; new ones work. */
  freeze(): void {
    for (const socket of this.sockets) this.frozen.add(socket);
  }

  /** Cuts the next message of each open connection in half, and breaks the connection. */
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

  /** A stream that delivers messages in order, with delays. */
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
