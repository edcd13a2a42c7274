import { Logger } from '@nestjs/common';
import { type DataSource } from 'typeorm';
import { Deadline } from '../../common/deadline.js';
import { sha256 } from '../../common/digests.js';
import { ChannelListeners, type NotificationListener, type Notifications } from '../core/notifications.js';
import { type SqlPlace } from '../sql/sql-place.js';
import { PostgresConnection } from './postgres-connection.js';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;

/** Receives messages with LISTEN on one connection of the pool. Reconnects if it breaks or does not answer a check. */
export class PostgresNotifications implements Notifications {
  private readonly logger = new Logger(PostgresNotifications.name);
  private readonly listeners = new ChannelListeners();
  private connection: ListeningConnection | null = null;
  private retry: NodeJS.Timeout | null = null;
  private pauseMs = FIRST_PAUSE_MS;
  private closed = false;

  constructor(
    private readonly place: SqlPlace,
    private readonly dataSource: () => DataSource,
    /** The timeout of a statement, and the interval between connection checks. */
    private readonly timeoutMs: number,
  ) {}

  subscribe(channel: string, listener: NotificationListener): () => void {
    const name = this.nameOf(channel);
    this.listeners.add(name, listener);
    if (this.connection) void this.listen([name], this.connection).catch(() => {});
    return () => {
      this.listeners.remove(name, listener);
      if (!this.listeners.has(name)) void this.connection?.run(`UNLISTEN ${quoted(name)}`).catch(() => {});
    };
  }

  /** Returns the name of a channel in the database. PostgreSQL limits names to 63 bytes. */
  nameOf(channel: string): string {
    const [kind, id] = channel.split(/:(.*)/s, 2);
    return `${this.place.prefix}${kind}${id === undefined ? '' : `_${sha256(id).slice(0, 20)}`}`;
  }

  async open(): Promise<void> {
    this.closed = false;
    await this.connect();
  }

  async close(): Promise<void> {
    this.closed = true;
    if (this.retry) clearTimeout(this.retry);
    this.retry = null;
    const { connection } = this;
    this.connection = null;
    // The connection returns to the pool and must not keep listening.
    await connection?.close(this.listeners.channels.map((name) => `UNLISTEN ${quoted(name)}`).join('; '));
  }

  private async connect(): Promise<void> {
    const obtained = await PostgresConnection.obtain(this.dataSource(), new Deadline(this.timeoutMs));
    const connection = new ListeningConnection(obtained, this.timeoutMs, {
      received: (name, message) => this.listeners.notify(name, message),
      lost: () => this.lost(connection),
    });
    // Channels that are added from now on send their own LISTEN.
    this.connection = connection;
    try {
      await this.listen(this.listeners.channels, connection);
    } catch (error) {
      if (this.connection === connection) this.connection = null;
      await connection.end();
      throw error;
    }
    if (this.closed) await connection.end();
    this.pauseMs = FIRST_PAUSE_MS;
  }

  private async listen(names: readonly string[], connection: ListeningConnection): Promise<void> {
    await connection.run(names.map((name) => `LISTEN ${quoted(name)}`).join('; '));
    for (const name of names) this.listeners.notify(name, null);
  }

  private lost(connection: ListeningConnection): void {
    if (this.closed || this.connection !== connection) return;
    this.logger.warn('The connection that listens for turn changes was lost. Waiters fall back to polling.');
    this.connection = null;
    void connection.end();
    this.reconnectLater();
  }

  private reconnectLater(): void {
    if (this.closed || this.retry) return;
    this.retry = setTimeout(() => {
      this.retry = null;
      this.connect().then(
        () => {
          if (!this.closed) this.logger.log('The connection that listens for turn changes is open again.');
        },
        () => this.reconnectLater(),
      );
    }, this.pauseMs);
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
  }
}

interface ConnectionListener {
  received(channel: string, message: string): void;
  lost(): void;
}

/** A connection that listens. Runs one statement at a time, and checks the connection when it is idle. */
class ListeningConnection {
  private readonly checking: NodeJS.Timeout;
  private last: Promise<unknown> = Promise.resolve();
  private isClosed = false;

  constructor(
    private readonly connection: PostgresConnection,
    private readonly timeoutMs: number,
    private readonly listener: ConnectionListener,
  ) {
    const { client } = connection;
    client.on('notification', this.received);
    for (const event of ['error', 'end']) client.on(event, this.lost);
    // A connection that does not answer is closed, which reports its loss.
    this.checking = setInterval(() => void this.run('SELECT 1').catch(() => {}), timeoutMs).unref();
  }

  run(sql: string): Promise<unknown> {
    const result = this.last.then(async () => {
      if (!this.isClosed && sql !== '') await this.connection.query(new Deadline(this.timeoutMs), sql);
    });
    this.last = result.catch(() => {});
    return result;
  }

  /** Runs a last statement, and returns the connection to the pool. */
  async close(sql: string): Promise<void> {
    await this.run(sql).catch(() => this.connection.end());
    this.stop();
    await this.connection.release();
  }

  /** Closes the connection, so that the pool does not reuse it. */
  async end(): Promise<void> {
    this.stop();
    await this.connection.end();
  }

  private stop(): void {
    this.isClosed = true;
    clearInterval(this.checking);
    const { client } = this.connection;
    client.off('notification', this.received);
    for (const event of ['error', 'end']) client.off(event, this.lost);
  }

  private readonly received = ({ channel, payload }: { channel?: string; payload?: string }): void => {
    if (channel !== undefined) this.listener.received(channel, payload ?? '');
  };

  private readonly lost = (): void => this.listener.lost();
}

const quoted = (name: string): string => `"${name}"`;
