import { type JsonValue } from '../common/json.js';

/** Where a document stands. `scope` separates agents or modules of one namespace; '' when there is only one. */
export interface StateAddress {
  readonly namespace: string;
  readonly scope: string;
  readonly sessionId: string;
  readonly key: string;
}

export interface StateDocument {
  readonly value: JsonValue;
  /** 1 when created, one more with every write. */
  readonly version: number;
  /** ISO-8601; absent when it does not expire. */
  readonly expiresAt?: string;
}

export interface StateWriteOptions {
  /** Writes only over this version; 0 means that there must be none. Left out: whatever is there. */
  readonly ifVersion?: number;
  /** Milliseconds from now by the store's clock; left out: never. */
  readonly ttlMs?: number;
}

/** Small JSON documents with an idle TTL and compare-and-set. An expired document is not there. */
export interface StateStore {
  get(address: StateAddress): Promise<StateDocument | null>;
  /**
   * Sent again without `ifVersion`, it is another write.
   * @returns what is stored now, or `null` when the version did not match and nothing was written
   */
  set(address: StateAddress, value: JsonValue, options?: StateWriteOptions): Promise<StateDocument | null>;
  /** Moves the expiry without touching value or version. @returns whether there was a document */
  extend(address: StateAddress, ttlMs: number): Promise<boolean>;
  /** @returns whether there was a document */
  delete(address: StateAddress): Promise<boolean>;
  /** Removes at most `limit` expired documents. @returns how many went */
  deleteExpired(limit: number): Promise<number>;
}
