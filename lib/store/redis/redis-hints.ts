import { type TurnHints } from '../../turn/turn.store.js';
import { HintEmitter } from '../hint-emitter.js';
import { type RedisClient } from './redis-adapter.options.js';

/** Hints by SUBSCRIBE, on a connection of their own, which ioredis makes again when it is lost. */
export class RedisHints implements TurnHints {
  readonly reach = 'store';
  private readonly hints = new HintEmitter();
  private subscriber: RedisClient | null = null;

  constructor(private readonly channel: string) {}

  subscribe(listener: (turnId: string) => void): () => void {
    return this.hints.subscribe(listener);
  }

  /** @param subscriber a connection that is used for nothing else, and closed by {@link close} */
  async open(subscriber: RedisClient): Promise<void> {
    this.subscriber = subscriber;
    // Lost connections are ioredis's business; what is missed meanwhile is found by those who poll.
    subscriber.on('error', () => {});
    subscriber.on('message', (_: string, turnId: string) => this.hints.tell(turnId));
    await subscriber.subscribe(this.channel);
    // ioredis would not catch what comes of it when the connection closes meanwhile.
    subscriber.on('ready', () => void subscriber.subscribe(this.channel).catch(() => {}));
  }

  close(): void {
    this.subscriber?.disconnect();
    this.subscriber = null;
  }
}
