import { type JsonValue } from '../common/json.js';

/** Which document of a session. `scope` separates agents or modules of one namespace; '' when there is only one. */
export interface StateName {
  readonly namespace: string;
  readonly scope: string;
  readonly key: string;
}

/** Where a document stands. */
export interface StateAddress extends StateName {
  readonly sessionId: string;
}

/** What one append added. */
export interface StateBatch {
  /** The append's id. */
  readonly id: string;
  /** ISO-8601, by the store's clock. */
  readonly at: string;
  readonly entries: readonly JsonValue[];
}

/**
 * A value, and what was appended to it since: what the document means is the value with the entries applied in order, which
 * is for its readers to do. So writers that know nothing of each other add to it without conflict, in one operation each.
 */
export interface StateDocument {
  readonly value: JsonValue;
  /** Appended since the value was written, in order. */
  readonly batches: readonly StateBatch[];
  /**
   * One more with every write and every append, so the value is of `version - batches.length`. A document that is created starts
   * above every version that was at its address before, also after a delete, an expiry or the end of the session (FIX-40): the
   * stores of this package start at their clock in microseconds. Always a safe integer.
   */
  readonly version: number;
  /** ISO-8601. */
  readonly createdAt: string;
  /** ISO-8601: the last write, append, or read that counted as an access. */
  readonly accessedAt: string;
  /** ISO-8601; absent when it does not expire. */
  readonly expiresAt?: string;
}

/** When a document expires, from now on by the store's clock. */
export interface StateAccess {
  /** Milliseconds from now; left out: never. */
  readonly ttlMs?: number;
}

/** Whether a write depends on its session (FIX-41). */
export interface StateOwnership {
  /**
   * Refuses the write unless the session is in the sessions of the same store and has not expired, checked in the same commit.
   * Default false: only the writes of erased sessions are refused. A turn's settlement does not need it, its fence decides.
   */
  readonly requireSession?: boolean;
}

export interface StateWriteOptions extends StateAccess, StateOwnership {
  /** Writes only over this version; 0 means that there must be none. Left out: whatever is there. */
  readonly ifVersion?: number;
}

/** Replaces the value by one into which the oldest batches are worked. The document means the same before and after. */
export interface StateFold {
  /** The id of the last batch that goes; those before it go as well. */
  readonly through: string;
  /** What the document meant with that batch. */
  readonly value: JsonValue;
}

export interface StateAppend extends StateAccess, StateOwnership {
  /** Minted by the caller. While a batch with this id is in the document, the append adds nothing and touches nothing. */
  readonly id: string;
  /** None: only an access, which neither adds a batch nor makes a new version. */
  readonly entries: readonly JsonValue[];
  /** The value of the document that is made when there is none. Left out: then nothing is written. */
  readonly initial?: JsonValue;
  /** Appends only to this version. */
  readonly ifVersion?: number;
  /** A document that is there expires when it did; `ttlMs` is for one that is made. Default false. */
  readonly keepExpiry?: boolean;
  /** Done on the way, when the batch is still there; else left out. */
  readonly fold?: StateFold;
}

/** An append that is part of a turn's settlement. */
export interface StateChange {
  readonly name: StateName;
  readonly append: StateAppend;
}

/** Which documents of a session. */
export interface StateSelection {
  /** One; other namespaces are another matter. */
  readonly namespace: string;
  /** The session, which need not be there. */
  readonly sessionId: string;
  /** Left out: of every scope. */
  readonly scope?: string;
}

/** Which documents of a session to list, in the order of scope and key as bytes. */
export interface StateQuery extends StateSelection {
  /** Those that stand after this place, whether it is there or not. Left out: from the beginning. */
  readonly after?: { readonly scope: string; readonly key: string };
  /** At most this many. */
  readonly limit: number;
}

/** A document, and where in its namespace and session it stands. */
export interface StateEntry {
  readonly scope: string;
  readonly key: string;
  readonly document: StateDocument;
}

/** What is cleared of one session. */
export interface StateReset {
  readonly sessionId: string;
  /** All their documents of the session go. */
  readonly namespaces: readonly string[];
  /** Minted by the caller: that of the namespaces in this session from now on, see {@link StateStore.reset}. */
  readonly epoch: string;
  /** The message log goes as well. */
  readonly log?: {
    /** Takes the place of the documents of its namespace, which is one of the namespaces. */
    readonly head: StateName;
    readonly value: JsonValue;
    /** Nothing is done unless the head is of this version; 0: unless there is none. */
    readonly ifVersion: number;
  };
}

/** What was cleared. */
export interface StateCleared {
  /** How many documents went, by namespace, those that had expired not counted. */
  readonly documents: Readonly<Record<string, number>>;
  readonly messages: number;
}

/** Small JSON documents with an idle TTL, compare-and-set, and conflict-free appends. An expired document is not there. */
export interface DocumentStore {
  /**
   * @param access counts the read as an access: moves `accessedAt` and the expiry, and neither value nor version
   * @returns `null` for one that is not there, or has expired
   */
  get(address: StateAddress, access?: StateAccess): Promise<StateDocument | null>;
  /**
   * Writes the value and drops all batches. Sent again without `ifVersion`, it is another write.
   * @returns what is stored now, or `null` when the version did not match and nothing was written
   * @throws SessionNotFoundError, SessionStateError: see {@link StateOwnership}; nothing was written then
   */
  set(address: StateAddress, value: JsonValue, options?: StateWriteOptions): Promise<StateDocument | null>;
  /**
   * Adds a batch to the end.
   * @returns what is stored now: without the batch when the version did not match; `null` when there is none and no `initial`
   * @throws as {@link set}
   */
  append(address: StateAddress, append: StateAppend): Promise<StateDocument | null>;
  /** @returns whether there was a document */
  delete(address: StateAddress): Promise<boolean>;
  /** Removes at most `limit` expired documents. @returns how many went */
  deleteExpired(limit: number): Promise<number>;
  /**
   * Removes the documents of a namespace that were not accessed for the longest, until `keep` live ones are left, at most
   * `limit` of them. @returns how many went
   */
  evictIdle(namespace: string, keep: number, limit: number): Promise<number>;
}

/** Documents, and what of them belongs together: to a session, in a namespace. */
export interface StateStore extends DocumentStore {
  /** Those of one session by scope, then key, in the order of their UTF-8 bytes. Costs the page. */
  list(query: StateQuery): Promise<StateEntry[]>;
  /** Documents that have not expired. */
  count(selection: StateSelection): Promise<number>;
  /** Namespaces in which a session has documents, in any order; perhaps also those whose documents have all expired. */
  namespaces(sessionId: string): Promise<string[]>;
  /**
   * Clears namespaces of one session in one commit, and begins an epoch of them: what a turn that began before writes to them is
   * refused from then on, see TurnLedger.settle. The epoch is kept, and the head written, only where there has been a turn: nothing
   * stays of a session of which nothing is known. Sent again, it is another reset.
   * @returns `null` when the head was of another version and nothing was done
   */
  reset(reset: StateReset): Promise<StateCleared | null>;
}
