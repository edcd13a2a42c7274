import { HttpException, HttpStatus } from '@nestjs/common';
import { commonMessages } from './common.messages.js';
import { statusOfCode } from './error-status.js';
import { type SessionsErrorBody, toErrorBody } from './sessions-error-body.js';
import { fieldOf } from './thrown.js';

/** The fields of HttpException that filters read. Not enumerable, because loggers print enumerable fields. */
const HTTP_FIELDS: PropertyDescriptorMap & ThisType<SessionsError> = {
  message: { enumerable: false },
  status: {
    get() {
      return this.getStatus();
    },
    enumerable: false,
  },
  response: {
    get() {
      return this.getResponse();
    },
    enumerable: false,
  },
};

/** Marks the errors of every copy of this package. Its value: the first code of the error's class, and of each of its base classes. */
const KINDS = Symbol.for('nestjs-agent-sessions.error');

/** Fields of HttpException without a meaning here. */
const UNUSED_FIELDS = ['options', 'errorCode', 'cause'];

/**
 * The base class of all errors that this package throws intentionally.
 *
 * `code` is stable across releases and safe to branch on. Messages are for people and may change. For exception filters
 * of the application it is an HttpException with the status and the body of the code (FIX-75).
 */
export abstract class SessionsError extends HttpException {
  /** The codes of the class's errors. The first one identifies the class in other copies of this package. */
  static readonly codes: readonly string[] = [];

  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    // The code, and so the status, is known only after this constructor.
    super(message, HttpStatus.INTERNAL_SERVER_ERROR);
    Object.defineProperties(this, HTTP_FIELDS);
    for (const field of UNUSED_FIELDS) Reflect.deleteProperty(this, field);
    if (options && 'cause' in options) {
      Object.defineProperty(this, 'cause', { value: options.cause, configurable: true, writable: true });
    }
    this.name = new.target.name;
    // HttpException has no message yet when its stack is created.
    Error.captureStackTrace(this, new.target);
  }

  /**
   * Returns whether the error is an instance of this class, also if it comes from another copy of this package: a bundle, or a
   * duplicate in `node_modules`. `instanceof` is false for those.
   */
  static isInstance<T extends SessionsError>(this: abstract new (...args: never[]) => T, error: unknown): error is T {
    if (error instanceof this) return true;
    const kinds = fieldOf(error, KINDS);
    if (!Array.isArray(kinds)) return false;
    const kind = kindOf(this);
    // Classes of the application extend this one without codes.
    return kind === undefined ? (this as unknown) === SessionsError : kinds.includes(kind);
  }

  /** @internal */
  get [KINDS](): readonly string[] {
    return kindsOf(this.constructor);
  }

  /** Returns the HTTP status of the code; 500 for faults of the application. */
  override getStatus(): number {
    return statusOfCode(this.code);
  }

  /** Returns the stable body of the error, without internals (NST-15). */
  override getResponse(): SessionsErrorBody {
    return toErrorBody(this);
  }

  /**
   * A sentence for logs besides class and code (NST-22). It must contain no ids, user input or values. Default: none.
   * @internal
   */
  get forLog(): string | undefined {
    return undefined;
  }
}

/** Returns the code that identifies the class, without that of its base class. */
function kindOf(type: object): string | undefined {
  return Object.hasOwn(type, 'codes') ? (type as typeof SessionsError).codes[0] : undefined;
}

function kindsOf(type: object): string[] {
  const kind = kindOf(type);
  const kinds = type === SessionsError ? [] : kindsOf(Object.getPrototypeOf(type) as object);
  return kind === undefined ? kinds : [kind, ...kinds];
}

/**
 * A value that a caller passed is missing, malformed or unknown. HTTP 400, without any change.
 *
 * Special codes: `SESSION_ID_MISSING` (NST-10), `UNKNOWN_STEP` for a step that the plan does not have (ORC-06), and
 * `UNSUPPORTED_MEDIA_TYPE` (415) for a body that is not JSON.
 */
export class InvalidInputError extends SessionsError {
  static override readonly codes = [
    'INVALID_INPUT',
    'SESSION_ID_MISSING',
    'UNKNOWN_STEP',
    'UNSUPPORTED_MEDIA_TYPE',
  ] as const;

  /** A retry cannot succeed. */
  readonly permanent = true;

  /**
   * @param path the path of the value, for example `query.limit`
   * @param problem what is wrong and what is allowed, as the rest of a sentence
   */
  constructor(
    readonly path: string,
    readonly problem: string,
    readonly code: (typeof InvalidInputError.codes)[number] = 'INVALID_INPUT',
  ) {
    super(`${path} ${problem}`);
  }
}

/**
 * The configuration is invalid (`CONFIGURATION`), or a call names an orchestrator that is not registered in this process
 * (`UNKNOWN_ORCHESTRATOR`). HTTP 500. Errors found at startup prevent the start of the application.
 */
export class SessionsConfigurationError extends SessionsError {
  static override readonly codes = ['CONFIGURATION', 'UNKNOWN_ORCHESTRATOR'] as const;
  readonly code: (typeof SessionsConfigurationError.codes)[number];
  /** The name that the call has used (`UNKNOWN_ORCHESTRATOR`). */
  readonly orchestrator?: string;
  /** The registered orchestrators (`UNKNOWN_ORCHESTRATOR`). */
  readonly known?: readonly string[];

  /** @param options `unknown`: the orchestrator that the call has named, and the registered ones */
  constructor(
    message: string,
    {
      unknown,
      ...options
    }: ErrorOptions & { readonly unknown?: { readonly orchestrator: string; readonly known: readonly string[] } } = {},
  ) {
    super(message, options);
    this.code = unknown ? 'UNKNOWN_ORCHESTRATOR' : 'CONFIGURATION';
    Object.assign(this, unknown);
  }

  /** Omits the name of an unknown orchestrator, which a client may have sent. @internal */
  override get forLog(): string | undefined {
    return this.code === 'CONFIGURATION' ? this.message : undefined;
  }
}

/**
 * A value cannot be stored as JSON without a change: a Date, Map, class instance, BigInt, function, NaN or cycle
 * (BOT-07), or an object with a key named `__proto__` (FIX-64). HTTP 400. Nothing was stored.
 */
export class StateSerializationError extends SessionsError {
  static override readonly codes = ['STATE_NOT_SERIALIZABLE'];
  readonly code = 'STATE_NOT_SERIALIZABLE';
  /** A retry cannot succeed. */
  readonly permanent = true;

  /** @param path the path of the value, for example `state.order.createdAt` */
  constructor(
    readonly path: string,
    readonly found: string,
    cure = 'Use plain objects, arrays, strings, finite numbers, booleans and null.',
  ) {
    super(`${path} is ${found}, which cannot be stored as JSON. ${cure}`);
  }

  /** Names the path, whose keys the application has chosen (DAY-17). @internal */
  override get forLog(): string {
    return this.message;
  }
}

/** A value is larger than its limit, measured as UTF-8 bytes of JSON. HTTP 413. Nothing was stored. */
export class TooLargeError extends SessionsError {
  static override readonly codes = ['TOO_LARGE'];
  readonly code = 'TOO_LARGE';
  readonly permanent = true;

  constructor(
    readonly subject: string,
    readonly bytes: number,
    readonly maxBytes: number,
  ) {
    super(`${subject} has ${bytes} bytes as JSON. Allowed: ${maxBytes}. Send less, or increase the limit.`);
  }

  /** Omits the subject, which may contain an id. @internal */
  override get forLog(): string {
    return `a value has ${this.bytes} bytes as JSON. Allowed: ${this.maxBytes}.`;
  }
}

/**
 * Why a store is unavailable (FIX-61). `outage`: it did not answer, or cannot work at present. `deployment`: it lacks a table, a
 * function or a privilege, which an operator must add. `unknown`: it answered with an error that its adapter does not know.
 * @inline
 */
export type StoreUnavailableReason = 'outage' | 'deployment' | 'unknown';

/**
 * The store was unreachable, did not respond in time, or cannot run the operation at present. HTTP 503.
 * It never means "not found": the stored data is unknown. Retrying the call is safe, whatever `maybeApplied` is, because it is not
 * applied twice. (Exception: `ConversationLog.append` outside a turn appends again.)
 */
export class StoreUnavailableError extends SessionsError {
  static override readonly codes = ['STORE_UNAVAILABLE'];
  readonly code = 'STORE_UNAVAILABLE';
  /**
   * `false`: nothing was written, because there was no connection or the store rolled back.
   * `true`: the response was lost, so the write may have been applied or may still be applied.
   */
  readonly maybeApplied: boolean;
  readonly reason: StoreUnavailableReason;

  /**
   * @param options `maybeApplied` is true unless it is certain that nothing was written. `reason` is `outage` unless the server has
   * answered with another error
   */
  constructor(
    message: string,
    options: ErrorOptions & { readonly maybeApplied?: boolean; readonly reason?: StoreUnavailableReason } = {},
  ) {
    super(message, options);
    this.maybeApplied = options.maybeApplied ?? true;
    this.reason = options.reason ?? 'outage';
  }
}

/**
 * The store rejects a value in every call: a character that its encoding lacks, a value above a limit of the server, a violated
 * constraint (FIX-61). HTTP 500. The value was not stored. A turn whose step or result is rejected fails with this error, also if
 * its handler catches it, and is not retried.
 */
export class StoreRejectedError extends SessionsError {
  static override readonly codes = ['STORE_REJECTED'];
  readonly code = 'STORE_REJECTED';
  readonly permanent = true;
  /** The operation of the store: `saveStep`, `settle`. Absent outside a turn. */
  readonly operation?: string;

  /**
   * @param problem what the store answered, without the rejected value
   * @param cure what to change
   */
  constructor(
    readonly problem: string,
    readonly cure: string,
    options: ErrorOptions & { readonly operation?: string } = {},
  ) {
    super(`${options.operation === undefined ? '' : `${options.operation}: `}${problem} ${cure}`, options);
    if (options.operation !== undefined) this.operation = options.operation;
  }

  /** @internal */
  override get forLog(): string {
    return this.message;
  }
}

/** The kinds of records that may be unreadable. @inline */
export type RecordKind =
  'session' | 'turn' | 'document' | 'checkpoint' | 'message' | 'step' | 'signal' | 'orchestration entry';

/**
 * A stored record cannot be read: its JSON does not parse or its fields are malformed (`CORRUPT_RECORD`, HTTP 500), so that lists skip
 * it. Or a newer version of the package wrote it (`NEWER_STATE`, FIX-29, HTTP 503). Then nothing is lost: update this process.
 */
export class UnreadableRecordError extends SessionsError {
  static override readonly codes = ['CORRUPT_RECORD', 'NEWER_STATE'] as const;
  readonly code: (typeof UnreadableRecordError.codes)[number];
  /** True if a retry cannot succeed: for `CORRUPT_RECORD`. Another process may be able to read a newer record. */
  readonly permanent: boolean;

  /**
   * @param recordId the id of the record: of a session or a turn, the key of a document, the position of a message, the type of an
   * entry; empty for several records
   * @param options `rules`: the version that a newer record was written with, and the latest one that this process supports. `message`:
   * replaces the default message about one corrupt record
   */
  constructor(
    readonly kind: RecordKind,
    readonly recordId: string,
    {
      rules,
      message = commonMessages.corruptRecord(kind, recordId),
      ...options
    }: ErrorOptions & {
      readonly rules?: { readonly written: number; readonly known: number };
      readonly message?: string;
    } = {},
  ) {
    super(rules ? commonMessages.newerRecord(kind, recordId, rules) : message, options);
    this.code = rules ? 'NEWER_STATE' : 'CORRUPT_RECORD';
    this.permanent = !rules;
  }
}
