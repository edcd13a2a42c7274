import { type Logger } from '@nestjs/common';
import { outsideRequests } from '../../common/background-work.js';
import { httpMessages } from '../http.messages.js';

/** The requests to a route that were rejected since its last log line. */
interface Refusals {
  count: number;
  readonly codes: Set<string>;
  readonly timer: NodeJS.Timeout;
}

/**
 * Logs rejected requests without a principal. So that such requests cannot fill the log, each route has at most one
 * line per minute: the first immediately, later ones with the number of requests since the last line.
 */
export class RefusalLog {
  private readonly routes = new Map<string, Refusals>();
  private readonly outsideRequests = outsideRequests();

  constructor(
    private readonly logger: Pick<Logger, 'log'>,
    private readonly intervalMs = 60_000,
  ) {}

  /**
   * Counts a rejected request.
   * @param line describes it; logged if the route had no line within the last minute
   */
  add(route: string, code: string, line: string): void {
    const refusals = this.routes.get(route);
    if (refusals) {
      refusals.count += 1;
      refusals.codes.add(code);
      return;
    }
    this.begin(route);
    this.logger.log(line);
  }

  /** Logs the remaining counts and stops. */
  close(): void {
    for (const [route, refusals] of this.routes) {
      clearTimeout(refusals.timer);
      this.logCount(route, refusals);
    }
    this.routes.clear();
  }

  private begin(route: string): void {
    const timer = this.outsideRequests(() => setTimeout(() => this.end(route), this.intervalMs).unref());
    this.routes.set(route, { count: 0, codes: new Set(), timer });
  }

  private end(route: string): void {
    const refusals = this.routes.get(route);
    this.routes.delete(route);
    if (!refusals || refusals.count === 0) return;
    this.begin(route);
    this.logCount(route, refusals);
  }

  private logCount(route: string, { count, codes }: Refusals): void {
    if (count > 0) this.logger.log(httpMessages.moreRefusals(route, count, [...codes]));
  }
}
