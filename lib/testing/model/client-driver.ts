import { SessionsError } from '../../common/sessions.error.js';
import { storeTime } from '../conformance/session-fixtures.js';
import { type ConformanceContext } from '../conformance/target.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type Driver } from './specimen.js';

/** The base class of drivers. */
export abstract class ClientDriver<Action, Operation> implements Driver<Action, Operation> {
  private minted = 0;

  /** @param openedAt by the store's clock; drivers show times as milliseconds since then */
  constructor(
    readonly id: string,
    private readonly openedAt = 0,
  ) {}

  static async open<Opened>(
    this: new (id: string, openedAt: number) => Opened,
    context: ConformanceContext,
  ): Promise<Opened> {
    return new this(context.id(), await storeTime(context));
  }

  abstract plan(action: Action): Operation | null;

  async send(adapter: SessionsAdapter, operation: Operation): Promise<unknown> {
    try {
      return await this.call(adapter, operation);
    } catch (error) {
      if (error instanceof SessionsError) return error.code;
      throw error;
    }
  }

  protected abstract call(adapter: SessionsAdapter, operation: Operation): Promise<unknown>;

  protected since(time: string): number {
    return Date.parse(time) - this.openedAt;
  }

  /** Returns a new name. */
  protected mint(what: string): string {
    this.minted += 1;
    return `${what}-${this.minted}`;
  }
}

/** Returns the element `which` positions before the last; the first if there are fewer. */
export function latest<T>(all: readonly T[], which: number): T | undefined {
  return all[Math.max(0, all.length - 1 - which)];
}
