import { type HealthIndicatorResult, type HealthIndicatorService } from '@nestjs/terminus';
import { checkInput } from '../common/check-input.js';
import { Deadline } from '../common/deadline.js';
import { errorType } from '../common/error-trace.js';
import { type SessionSweeper } from '../maintenance/session-sweeper.service.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type TurnQueue } from '../ledger/turn-queue.js';
import { type StoreWatch } from '../turn/store-watch.js';
import { type TurnService } from '../turn/turn.service.js';
import { type LaneHealth, LaneChecks } from './lane-health.js';
import { SessionsHealthOptions } from './sessions-health.options.js';

type Status = 'up' | 'degraded' | 'down';
/** Numbers and codes, which may be shown to any caller of the health endpoint. */
type Part = { readonly status: Status } & Readonly<Record<string, number | string>>;

const NOT_DEPLOYED: Part = { status: 'down', error: 'STORE_UNAVAILABLE', reason: 'deployment' };

/** The parts that the indicator checks. */
export interface HealthSources {
  readonly adapter: SessionsAdapter;
  readonly queue: TurnQueue;
  readonly turns: TurnService;
  readonly sweeper: SessionSweeper;
  readonly storeWatch: StoreWatch;
}

/**
 * Reports to @nestjs/terminus whether this process can accept and run turns (NST-20). Injectable with
 * `SessionsHealthModule`.
 *
 * ```ts
 * health.check([() => sessions.isHealthy('sessions')])
 * ```
 */
export class SessionsHealthIndicator {
  private readonly laneChecks = new LaneChecks(() => this.sources().turns.lanes);

  /** @hidden */
  constructor(
    private readonly indicators: HealthIndicatorService,
    private readonly sources: () => HealthSources,
  ) {}

  /**
   * Checks every part, each for at most `timeoutMs`. Details are numbers and codes, without ids.
   *
   * - Down: the store or the queue does not respond; the store lacks a table, a function or a privilege, so that this
   *   process claims no turns (FIX-61); migrations are pending; or a configured limit of stuck lanes or queue time is
   *   exceeded.
   * - Degraded (up in Terminus 11): lanes are stuck or could not be checked.
   *
   * @throws InvalidInputError for invalid options
   */
  async isHealthy<const Key extends string>(
    key: Key,
    options: SessionsHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const checked = checkInput(SessionsHealthOptions, options, 'options');
    const { timeoutMs = 1000 } = checked;
    const { adapter, queue, storeWatch, sweeper } = this.sources();
    const [store, notifications, migrations, lanes] = await Promise.all([
      storeWatch.isUsable ? partOf(timeoutMs, 'down', () => adapter.ping()) : NOT_DEPLOYED,
      queue.ping && partOf(timeoutMs, 'down', () => queue.ping?.()),
      adapter.pendingMigrations && partOf(timeoutMs, 'down', () => pendingIn(adapter)),
      partOf(timeoutMs, isBounded(checked) ? 'down' : 'degraded', (deadline) => this.lanes(checked, deadline)),
    ]);
    const { runs, skipped, failed } = sweeper.counts;
    const parts = {
      store,
      ...(notifications ? { queue: notifications } : {}),
      ...(migrations ? { migrations } : {}),
      lanes,
    };
    return this.toResult(key, worst(Object.values(parts)), { ...parts, sweeps: { runs, skipped, failed } });
  }

  private async lanes(options: SessionsHealthOptions, deadline: Deadline): Promise<Part> {
    const health = await this.laneChecks.run(options.stuckAfterMs ?? 60_000, deadline);
    return { status: statusOf(health, options), ...health };
  }

  private toResult<Key extends string>(
    key: Key,
    status: Status,
    details: Record<string, unknown>,
  ): HealthIndicatorResult<Key> {
    const indicator = this.indicators.check(key);
    if (status === 'down') return indicator.down(details);
    // Terminus 11 has no third state.
    return status === 'degraded' && 'degraded' in indicator ? indicator.degraded(details) : indicator.up(details);
  }
}

/** Checks a part. @param otherwise the status if it fails or does not respond */
async function partOf(
  timeoutMs: number,
  otherwise: Status,
  ask: (deadline: Deadline) => Promise<Part | void> | undefined,
): Promise<Part> {
  const startedAt = performance.now();
  const deadline = new Deadline(timeoutMs);
  try {
    const part = await deadline.wait((async () => ask(deadline))());
    return part ?? { status: 'up', ms: Math.round(performance.now() - startedAt) };
  } catch (error) {
    return { status: otherwise, error: errorType(error) };
  }
}

async function pendingIn(adapter: SessionsAdapter): Promise<Part> {
  const pending = (await adapter.pendingMigrations?.())?.length ?? 0;
  return { status: pending > 0 ? 'down' : 'up', pending };
}

function statusOf({ stuck, oldestWaitMs }: LaneHealth, options: SessionsHealthOptions): Status {
  const { maxStuckLanes = Infinity, maxWaitMs = Infinity } = options;
  if (stuck > maxStuckLanes || oldestWaitMs > maxWaitMs) return 'down';
  return stuck > 0 ? 'degraded' : 'up';
}

function isBounded({ maxStuckLanes, maxWaitMs }: SessionsHealthOptions): boolean {
  return maxStuckLanes !== undefined || maxWaitMs !== undefined;
}

function worst(parts: readonly Part[]): Status {
  const has = (status: Status): boolean => parts.some((part) => part.status === status);
  return has('down') ? 'down' : has('degraded') ? 'degraded' : 'up';
}
