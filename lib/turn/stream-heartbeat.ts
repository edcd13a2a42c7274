/** Proxies may close a connection that is silent for longer. */
const HEARTBEAT_MS = 15_000;
/**
 * The comment fills a buffer of 4 KiB, the default of nginx, so that a proxy which passes on only full buffers also
 * passes on the messages before it.
 */
const COMMENT = ' '.repeat(4096);

/** Sends a comment whenever nothing was sent on a stream for 15 s (AIS-35). */
export class StreamHeartbeat {
  private timer: NodeJS.Timeout | null;

  /**
   * @param pace no comment is sent while the client does not read
   * @param send sends a message with this comment
   */
  constructor(pace: { readonly isFull: boolean }, send: (comment: string) => void, everyMs = HEARTBEAT_MS) {
    this.timer = setInterval(() => {
      if (!pace.isFull) send(COMMENT);
    }, everyMs);
  }

  /** Called when a message was sent. */
  sent(): void {
    // Refreshing a timer that was cleared would keep the process alive.
    this.timer?.refresh();
  }

  stop(): void {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
  }
}
