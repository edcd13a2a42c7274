export type Value = string | number | null;

/** SQL with table names such as `{turn}` and a `?` for each value. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly Value[];
}

export interface Answer {
  readonly rows: readonly Record<string, unknown>[];
  /** The number of rows that a write changed. */
  readonly affected: number;
}

/** A statement, and a handler for its answer. */
export interface Query extends Statement {
  /** @returns further queries that are needed to complete the answer */
  take?(answer: Answer): readonly Query[] | void;
}

export function statement(sql: string, ...values: Value[]): Statement {
  return { sql, values };
}

/** Returns a placeholder for each value of a list. */
export function places(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}

/**
 * Sends queries in one round trip, and repeats while answers return further queries.
 * @param last the statements at the end of every round trip
 */
export async function ask(
  connection: { run(statements: readonly Statement[]): Promise<Answer[]> },
  queries: readonly Query[],
  last: readonly Query[] = [],
): Promise<void> {
  let trip = [...queries, ...last];
  do {
    const answers = await connection.run(trip);
    const next = trip.flatMap((query, at) => query.take?.(answers[at]) ?? []);
    trip = next.length > 0 ? [...next, ...last] : [];
  } while (trip.length > 0);
}
