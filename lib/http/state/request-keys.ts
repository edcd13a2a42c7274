import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { traceOf } from '../../common/error-trace.js';
import { mintId } from '../../common/ids.js';
import { type JsonObject, type JsonValue, toJsonObject } from '../../common/json.js';
import { jsonDigest } from '../../common/digests.js';
import { type StateOperationResult } from '../../state/state-report.js';
import { type DocumentStore, type StateAddress } from '../../ledger/state.store.js';
import { type Principal } from '../../transport/principal.js';
import { requestInProgress, requestKeyConflict } from './state-http.errors.js';

const NAMESPACE = 'agent-sessions:state-requests';
const HOLDER = 'holder';
const RETRY_AFTER_MS = 1000;
const MAX_TRIES = 5;

/** A client's request with its key. */
export interface KeyedRequest {
  readonly principal: Principal;
  readonly key: string;
  /** The operation and its body, as JSON. */
  readonly content: JsonValue;
}

export interface KeyedResult {
  readonly result: StateOperationResult;
  /** True if the stored result was returned and nothing was done. */
  readonly repeated: boolean;
}

/** The latest holder of the key. */
type Holder = JsonObject & {
  /** The hash of the content. The key belongs to this content while the holder's own document exists. */
  readonly fingerprint: string;
  readonly token: string;
};

/** The holder's own document, which no other request writes. The holder owns the key while this document exists. */
type OwnDocument = JsonObject & {
  /** Set when the request is done. */
  readonly result?: JsonObject;
};

interface Reservation {
  /** The address of this request's own document. */
  readonly address: StateAddress;
  /** The holder's own document. */
  readonly document: OwnDocument;
  /** False if another request holds the key. */
  readonly own: boolean;
}

/**
 * Results of requests by Idempotency-Key, shared by all processes (STA-27). A key belongs to one principal and to its
 * first request.
 *
 * The key is reserved before the work and receives the result after it. The reservation is renewed during the work and
 * expires if the process crashes. A process that was suspended and lost its key cannot renew, end or overwrite the
 * other reservation, because it writes only under its own token.
 */
export class RequestKeys {
  private readonly logger = new Logger(RequestKeys.name);

  /**
   * @param reservedMs milliseconds after which the reservation of a crashed process expires
   * @param keptMs milliseconds for which a result is kept
   */
  constructor(
    private readonly store: DocumentStore,
    private readonly reservedMs = 60_000,
    private readonly keptMs = 86_400_000,
  ) {}

  /**
   * Binds the key of a read-only request, whose response is computed each time: a stored copy of the state would
   * survive its reset.
   * @throws StateRequestError (`IDEMPOTENCY_CONFLICT`)
   */
  async bind(request: KeyedRequest): Promise<void> {
    await this.reserve(request, this.keptMs);
  }

  /**
   * Runs `act` unless its result is stored. Failures are not stored.
   * @throws StateRequestError, and the errors of `act`
   */
  async once(request: KeyedRequest, act: () => Promise<StateOperationResult>): Promise<KeyedResult> {
    const { address, document, own } = await this.reserve(request, this.reservedMs);
    if (document.result) return { result: document.result as unknown as StateOperationResult, repeated: true };
    if (!own) throw requestInProgress(RETRY_AFTER_MS);

    let result: StateOperationResult;
    try {
      result = await this.whileReserved(address, act);
    } catch (error) {
      await this.settle(() => this.store.delete(address));
      throw error;
    }
    const done: OwnDocument = { result: toJsonObject(result, 'result') };
    await this.settle(() => this.store.set(address, done, { ttlMs: this.keptMs }));
    return { result, repeated: false };
  }

  private async reserve({ principal, key, content }: KeyedRequest, ttlMs: number): Promise<Reservation> {
    const { userId, workspaceId = null } = principal;
    const place = { namespace: NAMESPACE, scope: '', sessionId: jsonDigest([userId, workspaceId, key], 'key') };
    const held = { ...place, key: HOLDER };
    const mine: Holder = { fingerprint: jsonDigest(content, 'content'), token: mintId() };
    const address = { ...place, key: mine.token };
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      // Extend the expiry, so that the version to overwrite belongs to this document and not to a later one.
      const found = await this.store.get(held, { ttlMs: 2 * this.keptMs });
      const holder = found?.value as Holder | undefined;
      // The store lost the response to this request's write and repeated it, so the request finds itself as the holder.
      if (holder?.token === mine.token) return { address, document: {}, own: true };
      const theirs = holder && (await this.store.get({ ...place, key: holder.token }));
      if (theirs) {
        if (tries > 0) await this.settle(() => this.store.delete(address));
        if (holder.fingerprint !== mine.fingerprint) throw requestKeyConflict();
        return { address, document: theirs.value as OwnDocument, own: false };
      }
      // Write this before the holder becomes visible: a holder without its document has lost the key.
      await this.store.set(address, {}, { ttlMs });
      const written = await this.store.set(held, mine, { ifVersion: found?.version ?? 0, ttlMs: 2 * this.keptMs });
      if (written) return { address, document: {}, own: true };
    }
    throw requestInProgress(RETRY_AFTER_MS);
  }

  /** Tries to write; the client receives the result of the work even if the write fails. */
  private async settle(write: () => Promise<unknown>): Promise<void> {
    await write().catch((error: unknown) => {
      this.logger.warn('Could not settle an Idempotency-Key. Its reservation will expire.', traceOf(error));
    });
  }

  /**
   * Renews the reservation during the work, and never after it: a renewal would shorten the time for which the result
   * is kept.
   */
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
    // If a renewal fails, the next one makes up for it.
    while (await pause()) await this.store.get(address, { ttlMs: this.reservedMs }).catch(() => null);
  }
}
