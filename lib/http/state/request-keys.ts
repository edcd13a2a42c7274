import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { traceOf } from '../../common/error-trace.js';
import { mintId } from '../../common/ids.js';
import { type JsonObject, type JsonValue, toJsonObject } from '../../common/json.js';
import { sha256 } from '../../common/sha-256.js';
import { type StateOperationResult } from '../../state/state-report.js';
import { type DocumentStore, type StateAddress } from '../../ledger/state.store.js';
import { type Principal } from '../../transport/principal.js';
import { RequestInProgressError, RequestKeyConflictError } from './state-http.errors.js';

const NAMESPACE = 'agent-sessions:state-requests';
const HOLDER = 'holder';
const RETRY_AFTER_MS = 1000;
const MAX_TRIES = 5;

/** What a client sent with a key. */
export interface KeyedRequest {
  readonly principal: Principal;
  readonly key: string;
  /** The operation and its body, as JSON. */
  readonly content: JsonValue;
}

export interface KeyedResult {
  readonly result: StateOperationResult;
  /** True when nothing was done for it. */
  readonly repeated: boolean;
}

/** Who had the key last. */
type Holder = JsonObject & {
  /** Of the content that the key belongs to, while the holder has a document of its own. */
  readonly fingerprint: string;
  readonly token: string;
};

/** A holder's own document, that nobody else writes: while it is there, the key is its. */
type Kept = JsonObject & {
  /** Once it is done. */
  readonly result?: JsonObject;
};

interface Reservation {
  /** Where this request keeps what is its own. */
  readonly address: StateAddress;
  /** The holder's. */
  readonly kept: Kept;
  /** False: another request has it. */
  readonly own: boolean;
}

/**
 * What was done by Idempotency-Key, in every process (STA-27). A key is one principal's, and belongs to the request that it first
 * came with.
 *
 * It is reserved before the work and given the result after it. While the work goes on the reservation is renewed; that of a process
 * which died lapses. A process that only slept, and finds its key with another one, can neither renew, end nor overwrite what is the
 * other's: what it writes stands under its own token.
 */
export class RequestKeys {
  private readonly logger = new Logger(RequestKeys.name);

  /**
   * @param reservedMs after which the reservation of a process that died lapses
   * @param keptMs for which a result is given again
   */
  constructor(
    private readonly store: DocumentStore,
    private readonly reservedMs = 60_000,
    private readonly keptMs = 86_400_000,
  ) {}

  /**
   * For requests that change nothing, and are answered anew each time: a copy of what the state holds would outlive its reset.
   * @throws RequestKeyConflictError
   */
  async bind(request: KeyedRequest): Promise<void> {
    await this.reserve(request, this.keptMs);
  }

  /**
   * Does it unless it is done. What fails is not kept.
   * @throws RequestKeyConflictError, RequestInProgressError, and what `act` throws
   */
  async once(request: KeyedRequest, act: () => Promise<StateOperationResult>): Promise<KeyedResult> {
    const { address, kept, own } = await this.reserve(request, this.reservedMs);
    if (kept.result) return { result: kept.result as unknown as StateOperationResult, repeated: true };
    if (!own) throw new RequestInProgressError(RETRY_AFTER_MS);

    let result: StateOperationResult;
    try {
      result = await this.whileReserved(address, act);
    } catch (error) {
      await this.settle(() => this.store.delete(address));
      throw error;
    }
    const done: Kept = { result: toJsonObject(result, 'result') };
    await this.settle(() => this.store.set(address, done, { ttlMs: this.keptMs }));
    return { result, repeated: false };
  }

  private async reserve({ principal, key, content }: KeyedRequest, ttlMs: number): Promise<Reservation> {
    const { userId, workspaceId = null } = principal;
    const place = { namespace: NAMESPACE, scope: '', sessionId: hash([userId, workspaceId, key]) };
    const held = { ...place, key: HOLDER };
    const mine: Holder = { fingerprint: hash(sorted(content)), token: mintId() };
    const address = { ...place, key: mine.token };
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      // Kept from lapsing, so that the version that is written over is of this document and of no later one.
      const found = await this.store.get(held, { ttlMs: 2 * this.keptMs });
      const holder = found?.value as Holder | undefined;
      // A store that sent the write twice finds its own.
      if (holder?.token === mine.token) return { address, kept: {}, own: true };
      const theirs = holder && (await this.store.get({ ...place, key: holder.token }));
      if (theirs) {
        if (tries > 0) await this.settle(() => this.store.delete(address));
        if (holder.fingerprint !== mine.fingerprint) throw new RequestKeyConflictError();
        return { address, kept: theirs.value as Kept, own: false };
      }
      // Before others can see whose the key is: a holder without it has lost the key.
      await this.store.set(address, {}, { ttlMs });
      const written = await this.store.set(held, mine, { ifVersion: found?.version ?? 0, ttlMs: 2 * this.keptMs });
      if (written) return { address, kept: {}, own: true };
    }
    throw new RequestInProgressError(RETRY_AFTER_MS);
  }

  /** What was done is done, and that is what the client must hear. */
  private async settle(write: () => Promise<unknown>): Promise<void> {
    await write().catch((error: unknown) => {
      this.logger.warn('An Idempotency-Key could not be settled; its reservation lapses.', traceOf(error));
    });
  }

  /** No renewal comes after it: it would shorten the time for which the answer is kept. */
  private async whileReserved<T>(address: StateAddress, act: () => Promise<T>): Promise<T> {
    const ended = new AbortController();
    const renewing = this.renewUntil(ended.signal, address);
    try {
      return await act();
    } finally {
      ended.abort();
      await renewing;
    }
  }

  private async renewUntil(signal: AbortSignal, address: StateAddress): Promise<void> {
    const pause = (): Promise<boolean> =>
      delay(this.reservedMs / 3, undefined, { signal, ref: false }).then(
        () => true,
        () => false,
      );
    // One that fails is made up for by the next.
    while (await pause()) await this.store.get(address, { ttlMs: this.reservedMs }).catch(() => null);
  }
}

function hash(value: JsonValue): string {
  return sha256(JSON.stringify(value));
}

/** With the keys of its objects in order. */
function sorted(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: JsonValue) => sorted(item));
  const object = value as JsonObject;
  return Object.fromEntries(
    Object.keys(object)
      .sort()
      .map((key) => [key, sorted(object[key])]),
  );
}
