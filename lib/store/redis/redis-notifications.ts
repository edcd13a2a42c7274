import { Logger } from '@nestjs/common';
import { Deadline } from '../../common/deadline.js';
import { ChannelListeners, type NotificationListener, type Notifications } from '../core/notifications.js';
import { type RedisClient } from './redis-adapter.options.js';

/**
 * Receives messages with SUBSCRIBE on a separate connection. ioredis reconnects when the connection breaks or does not
 * answer a PING.
 */
export class RedisNotifications implements Notifications {
  private readonly logger = new Logger(RedisNotifications.name);
  private readonly listeners = new ChannelListeners();
  private isLost = false;
  private subscriber: RedisClient | null = null;
  private checking: NodeJS.Timeout | undefined;

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
    subscriber.on('ready', () => {
      this.found(subscriber);
      void this.listen(this.listeners.channels).catch(() => {});
    });
    subscriber.on('close', () => this.lost(subscriber));
    // A Cluster monitors its nodes itself.
    if (!('nodes' in subscriber)) {
      this.checking = setInterval(() => void this.checkConnection(subscriber), this.timeoutMs).unref();
    }
  }

  close(): void {
    clearInterval(this.checking);
    const { subscriber } = this;
    this.subscriber = null;
    subscriber?.disconnect();
  }

  private async listen(channels: readonly string[]): Promise<void> {
    if (!this.subscriber) return;
    await this.subscriber.subscribe(...channels.map((channel) => this.base + channel));
    for (const channel of channels) this.listeners.notify(channel, null);
  }

  /** Logs once per outage, because every connection attempt closes. */
  private lost(subscriber: RedisClient): void {
    if (this.isLost || this.subscriber !== subscriber) return;
    this.isLost = true;
    this.logger.warn('The connection to Redis that listens for turn changes was lost; reconnecting.');
  }

  private found(subscriber: RedisClient): void {
    if (!this.isLost || this.subscriber !== subscriber) return;
    this.isLost = false;
    this.logger.log('The connection to Redis that listens for turn changes is open again.');
  }

  private async checkConnection(subscriber: RedisClient): Promise<void> {
    try {
      await new Deadline(this.timeoutMs).wait(subscriber.ping());
    } catch {
      if (this.subscriber === subscriber) subscriber.disconnect(true);
    }
  }
}
