import { EventEmitter } from 'node:events';
import { Logger } from '@nestjs/common';
import { type TurnHints } from '../../turn/turn.store.js';
import { type RedisClient } from './redis-adapter.options.js';

/** Hints by SUBSCRIBE, on a connection of their own, which ioredis makes again when it is lost. */
export class RedisHints implements TurnHints {
  readonly reach = 'store';
  private readonly logger = new Logger(RedisHints.name);
  private readonly events = new EventEmitter().setMaxListeners(0);
  private subscriber: RedisClient | null = null;

  constructor(private readonly channel: string) {}

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

  /** @param subscriber a connection that is used for nothing else, and closed by {@link close} */
  async open(subscriber: RedisClient): Promise<void> {
    this.subscriber = subscriber;
    // Lost connections are ioredis's business; what is missed meanwhile is found by those who poll.
    subscriber.on('error', () => {});
    subscriber.on('message', (_: string, turnId: string) => this.events.emit('changed', turnId));
    await subscriber.subscribe(this.channel);
    // ioredis would not catch what comes of it when the connection closes meanwhile.
    subscriber.on('ready', () => void subscriber.subscribe(this.channel).catch(() => {}));
  }

  close(): void {
    this.subscriber?.disconnect();
    this.subscriber = null;
  }
}
