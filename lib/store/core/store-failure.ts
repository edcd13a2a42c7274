import { type SessionsError, StoreRejectedError, StoreUnavailableError } from '../../common/sessions.error.js';
import { storeMessages } from './store.messages.js';

/**
 * How an error of a driver is handled (FIX-61). `outage`: the call is repeated. `value`: the server rejects the value in every call.
 * `deployment`: an operator must change the server. `unknown`: the server answered with a code that no list of its driver has.
 */
export type FailureKind = 'outage' | 'value' | 'deployment' | 'unknown';

/** An error of a driver, as its classification describes it. */
export interface StoreFailure {
  /** The name of the store: `PostgreSQL`. */
  readonly store: string;
  readonly kind: FailureKind;
  /** The end of the sentence "The store failed", for example ` (53100)`. It must not contain a stored value. */
  readonly detail: string;
  /** What to change, as a sentence. */
  readonly cure?: string;
  readonly cause: unknown;
  readonly maybeApplied: boolean;
}

const CURES: Readonly<Record<FailureKind, string>> = {
  outage: 'Retry later. If this repeats, check the store.',
  unknown: 'See the cause.',
  value: 'Change the value, or the setting of the server that forbids it.',
  deployment: 'Run the migrations, and grant this user the privileges that docs/stores lists.',
};

/** Converts an error of a driver to the typed error for its kind. */
export function storeError({
  store,
  kind,
  detail,
  cure = CURES[kind],
  cause,
  maybeApplied,
}: StoreFailure): SessionsError {
  if (kind === 'value') return new StoreRejectedError(storeMessages.rejected(store, detail), cure, { cause });
  return new StoreUnavailableError(storeMessages.failed(store, detail, cure), {
    cause,
    maybeApplied,
    reason: kind,
  });
}

/** Returns the error of a call before the store was opened, or after it was closed. @param store its name: `Redis store` */
export function notOpen(store: string): StoreUnavailableError {
  return new StoreUnavailableError(storeMessages.notOpen(store), { maybeApplied: false });
}

/** Returns a table that gives all of the codes this kind. */
export function kinds(kind: FailureKind, ...codes: readonly (string | number)[]): Record<string, FailureKind> {
  return Object.fromEntries(codes.map((code) => [code, kind]));
}
