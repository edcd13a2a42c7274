import { type Turn } from '../../ledger/turn.js';
import { type TurnHints } from '../../ledger/turn.store.js';
import { Deadline } from '../../common/deadline.js';
import { HintEmitter } from '../core/hint-emitter.js';
import { type RedisClient } from './redis-adapter.options.js';

/**
 * Hints by SUBSCRIBE, on a connection of their own. When it breaks, or does not answer when it is asked for a sign of life,
 * ioredis makes it again; what is missed meanwhile is found by those who poll.
 */
export class RedisHints implements TurnHints {
  readonly reach = 'store';
  private readonly hints = new HintEmitter();
  private subscriber: RedisClient | null = null;
  private asking: NodeJS.Timeout | undefined;

  constructor(
    private readonly channel: string,
    /** How long an answer may take, and how often a sign of life is asked for. */
    private readonly timeoutMs: number,
  ) {}

  subscribe(listener: (turnId: string, turn?: Turn) => void): () => void {
    return this.hints.subscribe(listener);
  }

  /** Of this process's own change, which need not wait for a message that may not come. */
  tell(turnId: string, turn?: Turn): void {
    this.hints.tell(turnId, turn);
  }

  /** @param subscriber a connection that is used for nothing else, and closed by {@link close} */
  async open(subscriber: RedisClient): Promise<void> {
    this.subscriber = subscriber;
    subscriber.on('error', () => {});
    subscriber.on('message', (_: string, turnId: string) => this.tell(turnId));
    await subscriber.subscribe(this.channel);
    // ioredis would not catch what comes of it when the connection closes meanwhile.
    subscriber.on('ready', () => void subscriber.subscribe(this.channel).catch(() => {}));
    // A Cluster looks after its nodes itself.
    if (!('nodes' in subscriber)) {
      this.asking = setInterval(() => void this.askForLife(subscriber), this.timeoutMs).unref();
    }
  }

  close(): void {
    clearInterval(this.asking);
    this.subscriber?.disconnect();
    this.subscriber = null;
  }

  private async askForLife(subscriber: RedisClient): Promise<void> {
    try {
      await new Deadline(this.timeoutMs).wait(subscriber.ping());
    } catch {
      if (this.subscriber === subscriber) subscriber.disconnect(true);
    }
  }
}
