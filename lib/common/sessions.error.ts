/**
 * The base of every error that this package throws on purpose.
 *
 * `code` is stable across releases and safe to branch on; messages are for people and may be reworded.
 */
export abstract class SessionsError extends Error {
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }

  /**
   * What a log may say of it besides class and code (NST-22): nothing, unless its class gives a sentence in which no id, nothing
   * that a user said and no value can stand.
   * @internal
   */
  get forLog(): string | undefined {
    return undefined;
  }
}

/** A value that a caller passed is missing, malformed or unknown. HTTP 400. Nothing was changed. */
export class InvalidInputError extends SessionsError {
  readonly code = 'INVALID_INPUT';
  /** Trying again cannot help. */
  readonly permanent = true;

  /**
   * @param path where the value stands, for example `query.limit`
   * @param problem what is wrong and what is allowed, as the rest of a sentence
   */
  constructor(
    readonly path: string,
    readonly problem: string,
  ) {
    super(`${path} ${problem}`);
  }
}

/** The module was set up wrongly; the application does not start. */
export class SessionsConfigurationError extends SessionsError {
  readonly code = 'CONFIGURATION';

  /** @internal */
  override get forLog(): string {
    return this.message;
  }
}

/**
 * A value would not survive being stored as JSON: a Date, Map, class instance, BigInt, function, NaN or cycle (BOT-07).
 * HTTP 400. Nothing was stored.
 */
export class StateSerializationError extends SessionsError {
  readonly code = 'STATE_NOT_SERIALIZABLE';
  /** Trying again cannot help. */
  readonly permanent = true;

  /** @param path where the value stands, for example `state.order.createdAt` */
  constructor(
    readonly path: string,
    readonly found: string,
  ) {
    super(
      `${path} is ${found}, which JSON cannot carry unchanged. Store plain objects, arrays, strings, finite numbers, booleans and null.`,
    );
  }
}

/** A value is larger than its limit, measured as UTF-8 bytes of JSON. HTTP 413. Nothing was stored. */
export class TooLargeError extends SessionsError {
  readonly code = 'TOO_LARGE';
  readonly permanent = true;

  constructor(
    readonly subject: string,
    readonly bytes: number,
    readonly maxBytes: number,
  ) {
    super(`${subject} takes ${bytes} bytes as JSON; at most ${maxBytes} are allowed.`);
  }
}

/**
 * The store could not be reached, did not answer in time, or refused the operation. HTTP 503.
 * Never a "not found": what the store holds is unknown. Sending the same call again is safe, whatever `maybeApplied` says:
 * what was done is not done twice. (But `ConversationLog.append` outside a turn appends again.)
 */
export class StoreUnavailableError extends SessionsError {
  readonly code = 'STORE_UNAVAILABLE';
  /**
   * `false`: certainly nothing was written: there was no connection, or the store refused and rolled back.
   * `true`: the answer was lost, so the write may have happened, or may happen still.
   */
  readonly maybeApplied: boolean;

  /** @param options `maybeApplied` is true unless it is certain that nothing was written */
  constructor(message: string, options: ErrorOptions & { readonly maybeApplied?: boolean } = {}) {
    super(message, options);
    this.maybeApplied = options.maybeApplied ?? true;
  }
}

/** The kinds of records that a store may fail to read. @inline */
export type RecordKind = 'session' | 'turn' | 'document' | 'checkpoint' | 'message' | 'step' | 'signal';

/**
 * A stored record cannot be read: its JSON does not parse, or its fields are malformed. HTTP 500. Repair or delete the record; lists
 * skip it.
 */
export class CorruptRecordError extends SessionsError {
  readonly code = 'CORRUPT_RECORD';
  readonly permanent = true;

  /** @param recordId the id of the record: of a session or a turn, the key of a document, the position of a message */
  constructor(
    readonly kind: RecordKind,
    readonly recordId: string,
    options?: ErrorOptions,
  ) {
    super(`The stored ${kind} ${JSON.stringify(recordId)} is corrupt. Repair or delete the record.`, options);
  }
}
