import { Deadline } from '../../common/deadline.js';
import { ChannelListeners, type NotificationListener, type Notifications } from '../core/notifications.js';
import { type RedisClient } from './redis-adapter.options.js';

/**
 * Receives messages with SUBSCRIBE on a separate connection. ioredis reconnects when the connection breaks or does not
 * answer a PING.
 */
export class RedisNotifications implements Notifications {
  private readonly listeners = new ChannelListeners();
  private subscriber: RedisClient | null = null;
  private asking: NodeJS.Timeout | undefined;

  constructor(
    /** The prefix of the channels' names. */
    private readonly base: string,
    /** The timeout of a PING, and the interval between PINGs. */
    private readonly timeoutMs: number,
  ) {}

  subscribe(channel: string, listener: NotificationListener): () => void {
    this.listeners.add(channel, listener);
    void this.listen([channel]).catch(() => {});
    return () => {
      this.listeners.remove(channel, listener);
      if (!this.listeners.has(channel)) void this.subscriber?.unsubscribe(this.base + channel).catch(() => {});
    };
  }

  /** @param subscriber a connection that only this class uses. {@link close} closes it */
  async open(subscriber: RedisClient): Promise<void> {
    this.subscriber = subscriber;
    subscriber.on('error', () => {});
    subscriber.on('message', (name: string, message: string) => {
      this.listeners.notify(name.slice(this.base.length), message);
    });
    await this.listen(this.listeners.channels);
    // ioredis does not catch the rejection if the connection closes during SUBSCRIBE.
    subscriber.on('ready', () => void this.listen(this.listeners.channels).catch(() => {}));
    // A Cluster monitors its nodes itself.
    if (!('nodes' in subscriber)) {
      this.asking = setInterval(() => void this.askForLife(subscriber), this.timeoutMs).unref();
    }
  }

  close(): void {
    clearInterval(this.asking);
    this.subscriber?.disconnect();
    this.subscriber = null;
  }

  private async listen(channels: readonly string[]): Promise<void> {
    if (!this.subscriber) return;
    await this.subscriber.subscribe(...channels.map((channel) => this.base + channel));
    for (const channel of channels) this.listeners.notify(channel, null);
  }

  private async askForLife(subscriber: RedisClient): Promise<void> {
    try {
      await new Deadline(this.timeoutMs).wait(subscriber.ping());
    } catch {
      if (this.subscriber === subscriber) subscriber.disconnect(true);
    }
  }
}
