export type Value = string | number | null;

/** SQL that names tables as `{turn}`, with a `?` for each value. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly Value[];
}

export interface Answer {
  readonly rows: readonly Record<string, unknown>[];
  /** Rows that a write changed. */
  readonly affected: number;
}

/** A statement, and what becomes of its answer. */
export interface Query extends Statement {
  /** @returns what must be asked next, before the answer is complete */
  take?(answer: Answer): readonly Query[] | void;
}

export function statement(sql: string, ...values: Value[]): Statement {
  return { sql, values };
}

/** A place for each value of a list. */
export function places(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}

/**
 * Asks in one round trip, and goes on as long as answers ask for more.
 * @param last what ends every trip
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
