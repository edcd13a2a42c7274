import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { StoreUnavailableError } from 'nestjs-agent-sessions';
import { type Completion, type Entry, type Happening, type OperationName, type Operations } from './history.js';

type Unstamped<T> = T extends unknown ? Omit<T, 'at' | 'process'> : never;

/** The history file of one process. Each line is written immediately, so that a SIGKILL loses none. */
export class HistoryFile {
  private readonly file: string;
  private calls = 0;

  constructor(
    folder: string,
    readonly process: string,
  ) {
    this.file = join(folder, `${process}.jsonl`);
  }

  note(happening: Happening): void {
    this.write({ type: 'note', ...happening });
  }

  /**
   * Makes a call and records its outcome.
   * @param summary returns the part of the result for the history
   */
  async call<Op extends OperationName, Result>(
    op: Op,
    args: Operations[Op]['args'],
    work: () => Promise<Result>,
    summary: (result: Result) => Operations[Op]['value'],
  ): Promise<Result> {
    this.calls += 1;
    const call = this.calls;
    this.write({ type: 'invoke', call, op, args } as Unstamped<Entry>);
    const end = (completion: Pick<Completion, 'type' | 'value' | 'error'>): void => this.write({ call, ...completion });
    try {
      const result = await work();
      end({ type: 'ok', value: summary(result) });
      return result;
    } catch (error) {
      const { code, name } = error as { readonly code?: string; readonly name: string };
      end({ type: isUncertain(error) ? 'unknown' : 'fail', error: code ?? name });
      throw error;
    }
  }

  private write(entry: Unstamped<Entry>): void {
    const at = Number(process.hrtime.bigint() / 1000n);
    appendFileSync(this.file, `${JSON.stringify({ at, process: this.process, ...entry })}\n`);
  }
}

/** Returns whether the failed call may have taken effect. */
function isUncertain(error: unknown): boolean {
  return error instanceof StoreUnavailableError && error.maybeApplied;
}
