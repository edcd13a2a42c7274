import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { TurnFencedError } from '../../ledger/turn.errors.js';
import { type TurnHold } from '../../ledger/turn.store.js';

/** Kills a worker at one of its writes for a session, before or after the store has made it. */
export interface Kill {
  /** The number of the write, from 1. */
  readonly at: number;
  readonly isStored: boolean;
  /** Called after the kill. Default: does nothing. */
  readonly then?: () => unknown;
}

/**
 * Stores that can kill workers at each of their writes: events, steps, waits and settlements. The store then offers the
 * turn to another worker, and rejects all further writes of the killed one.
 */
export class KillableStores {
  private readonly kills = new Map<string, Kill>();
  private readonly killed = new Set<string>();
  private readonly counts = new Map<string, number>();
  private readonly names = new Map<string, string[]>();

  /** Returns a store whose workers can be killed. Call it for each client of the store. */
  wrap(adapter: SessionsAdapter): SessionsAdapter {
    const { turns, events } = adapter;
    const killing = <Args extends [hold: TurnHold, ...unknown[]], R>(write: (...args: Args) => Promise<R>) => {
      return (...args: Args): Promise<R> => this.write(turns, args[0], () => write(...args));
    };
    return withMethods(adapter, {
      turns: withMethods(turns, {
        saveStep: killing(async (hold, step, ...others) => {
          const stored = await turns.saveStep(hold, step, ...others);
          this.names.set(hold.sessionId, [...this.steps(hold.sessionId), step.name]);
          return stored;
        }),
        wait: killing((...args) => turns.wait(...args)),
        settle: killing((...args) => turns.settle(...args)),
      }),
      events: withMethods(events, { append: killing((...args) => events.append(...args)) }),
    });
  }

  /** Kills the worker of the session's turn once. */
  kill(sessionId: string, kill: Kill): void {
    this.kills.set(sessionId, kill);
  }

  /** Returns whether a worker of the session was killed. */
  isKilled(sessionId: string): boolean {
    return this.killed.has(sessionId);
  }

  /** Returns the number of writes for a session so far. */
  writes(sessionId: string): number {
    return this.counts.get(sessionId) ?? 0;
  }

  /** Returns the names of the steps that are stored for a session. */
  steps(sessionId: string): readonly string[] {
    return this.names.get(sessionId) ?? [];
  }

  private async write<R>(turns: SessionsAdapter['turns'], hold: TurnHold, make: () => Promise<R>): Promise<R> {
    const { sessionId, turnId, fence } = hold;
    const count = this.writes(sessionId) + 1;
    this.counts.set(sessionId, count);
    const kill = this.kills.get(sessionId);
    if (kill?.at !== count) return make();
    if (kill.isStored) await make();
    // Fails if the write has ended the turn, or makes it wait.
    await turns.release(hold, 0).catch(() => undefined);
    this.killed.add(sessionId);
    kill.then?.();
    throw new TurnFencedError(sessionId, turnId, fence);
  }
}

/** Replaces methods of an object, which may have private fields. */
export function withMethods<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy({} as T, {
    get: (_, key) => {
      if (Object.hasOwn(methods, key)) return methods[key as keyof T];
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
    has: (_, key) => key in target,
    getPrototypeOf: () => Reflect.getPrototypeOf(target),
  });
}
