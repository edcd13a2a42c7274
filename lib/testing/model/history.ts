/** A call of one client and its outcome. `calledAt` and `answeredAt` are values of one counter. */
export interface RecordedCall<Operation> {
  readonly client: number;
  readonly operation: Operation;
  readonly outcome: unknown;
  readonly calledAt: number;
  readonly answeredAt: number;
}

/** Records the calls and outcomes of the clients of one subject. */
export class History<Operation> {
  readonly calls: RecordedCall<Operation>[] = [];
  private moment = 0;

  async record(client: number, operation: Operation, send: () => Promise<unknown>): Promise<void> {
    const calledAt = this.moment++;
    const outcome = await send();
    this.calls.push({ client, operation, outcome, calledAt, answeredAt: this.moment++ });
  }

  /** Formats the calls for an error message, in the order of the calls. */
  toString(): string {
    return [...this.calls]
      .sort((a, b) => a.calledAt - b.calledAt)
      .map(
        ({ client, operation, outcome, calledAt, answeredAt }) =>
          `[${calledAt}-${answeredAt}] client ${client}: ${JSON.stringify(operation)} gave ${JSON.stringify(outcome)}`,
      )
      .join('\n');
  }
}
