/** What one client sent and saw. Call and answer are moments of one counter: which calls overlapped follows from them. */
export interface RecordedCall<Operation> {
  readonly client: number;
  readonly operation: Operation;
  readonly outcome: unknown;
  readonly calledAt: number;
  readonly answeredAt: number;
}

/** Writes down what the clients of one subject do and see. */
export class History<Operation> {
  readonly calls: RecordedCall<Operation>[] = [];
  private moment = 0;

  async record(client: number, operation: Operation, send: () => Promise<unknown>): Promise<void> {
    const calledAt = this.moment++;
    const outcome = await send();
    this.calls.push({ client, operation, outcome, calledAt, answeredAt: this.moment++ });
  }

  /** For people, in the order of the calls. */
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
