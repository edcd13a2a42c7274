import { Logger } from '@nestjs/common';
import { type DataSource } from 'typeorm';
import { type Turn } from '../../ledger/turn.js';
import { type TurnHints } from '../../ledger/turn.store.js';
import { Deadline } from '../../common/deadline.js';
import { HintEmitter } from '../core/hint-emitter.js';
import { type SqlPlace } from '../sql/sql-place.js';
import { PostgresConnection } from './postgres-connection.js';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;

/**
 * Hints by LISTEN, on one connection of the pool. When it breaks, or does not answer when it is asked for a sign of life,
 * it is made again; what is missed meanwhile is found by those who poll.
 */
export class PostgresHints implements TurnHints {
  readonly reach = 'store';
  private readonly logger = new Logger(PostgresHints.name);
  private readonly hints = new HintEmitter();
  private listening: { readonly connection: PostgresConnection; readonly stop: () => Promise<void> } | null = null;
  private retry: NodeJS.Timeout | null = null;
  private pauseMs = FIRST_PAUSE_MS;
  private closed = false;

  constructor(
    private readonly place: SqlPlace,
    private readonly dataSource: () => DataSource,
    /** How long an answer may take, and how often a sign of life is asked for. */
    private readonly timeoutMs: number,
  ) {}

  subscribe(listener: (turnId: string, turn?: Turn) => void): () => void {
    return this.hints.subscribe(listener);
  }

  /** Of this process's own change, which need not wait for a notification that may not come. */
  tell(turnId: string, turn?: Turn): void {
    this.hints.tell(turnId, turn);
  }

  async open(): Promise<void> {
    this.closed = false;
    await this.listen();
  }

  async close(): Promise<void> {
    this.closed = true;
    if (this.retry) clearTimeout(this.retry);
    if (!this.listening) return;
    const { connection, stop } = this.listening;
    this.listening = null;
    await stop();
    // The connection goes back to the pool, and must not listen there.
    await connection
      .query(new Deadline(this.timeoutMs), this.place.fill('UNLISTEN {hints!}'))
      .catch(() => connection.end());
    await connection.release();
  }

  private async listen(): Promise<void> {
    const deadline = new Deadline(this.timeoutMs);
    const connection = await PostgresConnection.obtain(this.dataSource(), deadline);
    try {
      await connection.query(deadline, this.place.fill('LISTEN {hints!}'));
    } catch (error) {
      await connection.release();
      throw error;
    }
    if (this.closed) {
      await connection.end();
      return;
    }
    this.listening = { connection, stop: this.listenTo(connection) };
    this.pauseMs = FIRST_PAUSE_MS;
  }

  /** @returns ends it, and waits for the last sign of life: the client may be the application's */
  private listenTo(connection: PostgresConnection): () => Promise<void> {
    const { client } = connection;
    const heard = ({ payload }: { payload?: string }): void => void (payload && this.tell(payload));
    const lost = (): void => this.lost();
    // A connection that does not answer is closed, which is how its loss is heard of.
    let life: Promise<unknown> = Promise.resolve();
    const askForLife = (): void => {
      life = connection.query(new Deadline(this.timeoutMs), 'SELECT 1').catch(() => {});
    };
    const asking = setInterval(askForLife, this.timeoutMs).unref();
    client.on('notification', heard);
    for (const event of ['error', 'end']) client.on(event, lost);
    return async () => {
      clearInterval(asking);
      client.off('notification', heard);
      for (const event of ['error', 'end']) client.off(event, lost);
      await life;
    };
  }

  private lost(): void {
    if (this.closed || !this.listening) return;
    this.logger.warn('The connection that listens for turn hints was lost; waiting for turns goes on by polling.');
    const { connection, stop } = this.listening;
    this.listening = null;
    void stop();
    void connection.release();
    this.tryAgain();
  }

  private tryAgain(): void {
    if (this.closed) return;
    this.retry = setTimeout(() => {
      this.listen().catch(() => this.tryAgain());
    }, this.pauseMs);
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
  }
}
