import { EventEmitter } from 'node:events';
import { Logger } from '@nestjs/common';
import { type DataSource, type QueryRunner } from 'typeorm';
import { type TurnHints } from '../../../turn/turn.store.js';
import { type SqlPlace } from '../sql-place.js';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;

/** What we need of a client of `pg`. */
interface Client {
  on(event: string, listener: (message: Notification) => void): void;
  off(event: string, listener: (message: Notification) => void): void;
}

interface Notification {
  readonly payload?: string;
}

/**
 * Hints by LISTEN, on one connection of the pool. When it breaks it is made again; what is missed meanwhile is found by
 * those who poll.
 */
export class PostgresHints implements TurnHints {
  readonly reach = 'store';
  private readonly logger = new Logger(PostgresHints.name);
  private readonly events = new EventEmitter().setMaxListeners(0);
  private listening: { readonly runner: QueryRunner; readonly stop: () => void } | null = null;
  private retry: NodeJS.Timeout | null = null;
  private pauseMs = FIRST_PAUSE_MS;
  private closed = false;

  constructor(
    private readonly place: SqlPlace,
    private readonly dataSource: () => DataSource,
  ) {}

  subscribe(listener: (turnId: string) => void): () => void {
    const harmless = (turnId: string): void => {
      try {
        listener(turnId);
      } catch (error) {
        this.logger.error('A listener of turn hints threw.', error instanceof Error ? error.stack : String(error));
      }
    };
    this.events.on('changed', harmless);
    return () => this.events.off('changed', harmless);
  }

  /** Of this process's own change, which need not wait for a notification that may not come. */
  tell(turnId: string): void {
    this.events.emit('changed', turnId);
  }

  async open(): Promise<void> {
    const runner = this.dataSource().createQueryRunner();
    try {
      const client = (await runner.connect()) as Client;
      await runner.query(this.place.fill('LISTEN {hints!}'));
      this.listening = { runner, stop: this.listenTo(client) };
      this.pauseMs = FIRST_PAUSE_MS;
    } catch (error) {
      await runner.release().catch(() => {});
      throw error;
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    if (this.retry) clearTimeout(this.retry);
    if (!this.listening) return;
    const { runner, stop } = this.listening;
    this.listening = null;
    stop();
    // The connection goes back to the pool, and must not listen there.
    await runner.query(this.place.fill('UNLISTEN {hints!}')).catch(() => {});
    await runner.release();
  }

  /** @returns ends it: the client may be the application's */
  private listenTo(client: Client): () => void {
    const heard = ({ payload }: Notification): void => void (payload && this.tell(payload));
    const lost = (): void => this.lost();
    client.on('notification', heard);
    for (const event of ['error', 'end']) client.on(event, lost);
    return () => {
      client.off('notification', heard);
      for (const event of ['error', 'end']) client.off(event, lost);
    };
  }

  private lost(): void {
    if (this.closed || !this.listening) return;
    this.logger.warn('The connection that listens for turn hints was lost; waiting for turns goes on by polling.');
    const { runner, stop } = this.listening;
    this.listening = null;
    stop();
    void runner.release().catch(() => {});
    this.tryAgain();
  }

  private tryAgain(): void {
    this.retry = setTimeout(() => {
      this.open().catch(() => this.tryAgain());
    }, this.pauseMs);
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
  }
}
