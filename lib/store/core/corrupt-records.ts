import { Logger } from '@nestjs/common';
import { loggedId } from '../../common/log-details.js';
import { type RecordKind, UnreadableRecordError } from '../../common/sessions.error.js';

/** The number of reported records that a process remembers. */
const MAX_REPORTED = 1000;

const logger = new Logger('SessionsStore');
const reported = new Set<string>();

/**
 * Maps a stored record to its value.
 * @throws UnreadableRecordError if that fails
 */
export function readRecord<T>(kind: RecordKind, id: string, map: () => T): T {
  try {
    return map();
  } catch (error) {
    throw asCorrupt(kind, id, error);
  }
}

/**
 * Returns a function that maps a stored row to its value, and throws UnreadableRecordError if that fails. It makes no closure for each
 * row, and calls `idOf` for corrupt ones only.
 */
export function recordReader<Row, T>(
  kind: RecordKind,
  read: (row: Row) => T,
  idOf: (row: Row) => string,
): (row: Row) => T {
  return (row) => {
    try {
      return read(row);
    } catch (error) {
      throw asCorrupt(kind, idOf(row), error);
    }
  };
}

function asCorrupt(kind: RecordKind, id: string, cause: unknown): UnreadableRecordError {
  return cause instanceof UnreadableRecordError ? cause : new UnreadableRecordError(kind, id, { cause });
}

/** @throws UnreadableRecordError, by `readRecord` */
export function assertField(isValid: boolean, field: string): void {
  if (!isValid) throw new TypeError(`The field ${field} is malformed.`);
}

/** Maps the records of a list. Skips corrupt ones and logs each of them once (FIX-53). */
export function readableRecords<Row, T>(rows: readonly Row[], map: (row: Row) => T): T[] {
  return rows.flatMap((row) => {
    try {
      return [map(row)];
    } catch (error) {
      if (!(error instanceof UnreadableRecordError)) throw error;
      report(error);
      return [];
    }
  });
}

/** The number of rows that a query found, and the readable records among them. */
export interface ReadRecords<T> {
  readonly rows: number;
  readonly values: readonly T[];
}

/** Maps the records of a list as {@link readableRecords}, and counts them all. */
export function readAll<Row, T>(rows: readonly Row[], map: (row: Row) => T): ReadRecords<T> {
  return { rows: rows.length, values: readableRecords(rows, map) };
}

/** Returns up to `limit` readable records. Reads further rows to replace skipped ones. */
export async function readableList<T>(limit: number, read: (limit: number) => Promise<ReadRecords<T>>): Promise<T[]> {
  for (let asked = limit; ;) {
    const { rows, values } = await read(asked);
    if (values.length >= limit || rows < asked) return values.slice(0, limit);
    asked = limit + rows - values.length;
  }
}

function report({ kind, recordId, cause }: UnreadableRecordError): void {
  const key = JSON.stringify([kind, recordId]);
  if (reported.has(key) || reported.size >= MAX_REPORTED) return;
  reported.add(key);
  const found = cause instanceof Error ? ` (${cause.name})` : '';
  logger.error(`Skipped a corrupt ${kind}, ${loggedId(recordId)}${found}. Repair or delete it.`);
}
