import { Logger } from '@nestjs/common';
import { StoreUnavailableError } from '../../common/sessions.error.js';
import { pause, repeatWhileUnavailable } from '../../common/while-unavailable.js';
import { UI_RESET } from '../../chat/message-fold.js';
import { type Protocol, toProtocol, withoutAnswered } from '../../chat/protocol-chunks.js';
import { withReceivedAnswers } from '../../chat/received-answers.js';
import { replay } from '../../chat/replay.js';
import { type AnswerEnd, ResponseChunks } from '../../chat/response-chunks.js';
import { chunksOf, UIEventReader } from '../../chat/ui-events.js';
import { type UIChunk } from '../../chat/ui-message.js';
import { type TurnEventLog } from '../../ledger/turn-event-log.js';
import { SETTLED, type TurnEvent, WAITING } from '../../ledger/turn-event.js';
import { type TurnLedger } from '../../ledger/turn.store.js';
import { type TurnService } from '../../turn/turn.service.js';
import { httpMessages } from '../http.messages.js';

/** Page size for reading stored events. */
const PAGE = 500;

/** The chunks of an answer that a response contains. */
export interface ChatRange {
  readonly turnId: string;
  /** The segment that the response begins with, see `segmentsOf`. */
  readonly segment: number;
  /**
   * The number of chunks of this response that the client has received. With protocol 6, 0 or absent. Absent: the response
   * begins with a replay, which is the fewest chunks that show the whole answer so far; the segment is then 0.
   */
  readonly skip?: number;
  /**
   * True if the request only opens the answer, after a reload or a broken connection. The stored chunks are then
   * followed by the answers of the user that the turn has received but not yet continued with (AIS-32). Default false:
   * the turn has received none, or this client sent them.
   */
  readonly isResumed?: boolean;
}

/** Ends incomplete chunks. The caller must break the connection without a `finish`, so that the client resumes. */
export const CUT = Symbol('cut');

/**
 * Converts the events of turns to the chunks that clients receive (AIS-13, AIS-14). All responses of a chat controller
 * share one instance. A {@link ChatRange} describes which chunks one client needs. `ChatResponses` sends `chunks`.
 * `ChatTurns` reads `stored` and `received` when it accepts an answer of the user, or stops a turn.
 *
 * "The answer" is the one of the assistant. "Answers of the user" are approvals, denials, and outputs of tools that run
 * in the page.
 */
export class ChatStream {
  private readonly logger = new Logger(ChatStream.name);
  /** The orchestrators for which `warnOfEmpty` has logged its warning. */
  private readonly warned = new Set<string>();

  constructor(
    private readonly turns: Pick<TurnService, 'get' | 'readEvents'>,
    private readonly log: Pick<TurnEventLog, 'read'>,
    private readonly ledger: Pick<TurnLedger, 'signals'>,
    readonly protocol: Protocol,
  ) {}

  /**
   * Yields the stored chunks, then those that follow, until the answer ends or waits for its user. Omits the first
   * `range.skip` chunks. Ends with {@link CUT} if chunks are missing. Waits while the store is unavailable (AIS-15).
   */
  async *chunks(range: ChatRange, signal: AbortSignal): AsyncGenerator<UIChunk | typeof CUT, void> {
    let skip = range.skip ?? 0;
    /** The last chunk, if it was skipped. */
    let skipped: UIChunk | undefined;
    for await (const chunk of this.response(range, signal)) {
      const { chunks, isCut } = chunk === CUT ? { chunks: [], isCut: true } : toProtocol([chunk], this.protocol);
      for (const sent of chunks) {
        skipped = skip > 0 ? sent : undefined;
        if (skip > 0) skip -= 1;
        else yield sent;
      }
      if (!isCut) continue;
      yield CUT;
      return;
    }
    // The client has all chunks. WorkflowChatTransport would repeat its request forever if it received none.
    if (skipped) yield skipped;
  }

  /** Returns all stored chunks of a turn. */
  async stored(turnId: string): Promise<UIChunk[]> {
    return chunksOf(await this.storedEvents(turnId));
  }

  /** Returns all stored chunks of a turn, with the answers of the user that it has received but not continued with. */
  async received(turnId: string): Promise<readonly UIChunk[]> {
    return this.withReceived(turnId, await this.stored(turnId));
  }

  private withReceived(turnId: string, chunks: readonly UIChunk[]): Promise<readonly UIChunk[]> {
    return withReceivedAnswers(chunks, () => this.ledger.signals(turnId));
  }

  /**
   * Yields a whole response in the stored form; `chunks` translates it, and skips the chunks that the client has.
   * 1. If the client replays or resumes: all stored chunks at once, with the received answers of the user.
   * 2. The chunks of later events, until the answer ends or waits for its user; {@link CUT} if the events end before.
   *
   * With protocol 7, a client reconnects with the number of chunks that it has, so each connection must yield the same
   * chunks in the same order. A replay is the exception.
   */
  private async *response(
    { turnId, segment, skip, isResumed = false }: ChatRange,
    signal: AbortSignal,
  ): AsyncGenerator<UIChunk | typeof CUT, void> {
    const response = new ResponseChunks(turnId, segment);
    // The reader needs all events from the first one, because a large chunk is stored as several events.
    const reader = new UIEventReader();
    let after = 0;
    // Protocol 6 lacks a chunk for a reset, so its clients get a replay, which omits replaced chunks.
    const isReplay = skip === undefined || (segment === 0 && this.protocol === 6);
    /** The answers of the user that were sent before the turn stored them. It stores them when it continues. */
    const early = new Set<string>();
    if (isReplay || isResumed) {
      const events = await repeatWhileUnavailable(() => this.storedEvents(turnId), signal);
      after = events.at(-1)?.offset ?? 0;
      const stored = events.flatMap((event) => reader.read(event) ?? []);
      const known = new Set(stored);
      const received = await repeatWhileUnavailable(() => this.withReceived(turnId, stored), signal);
      for (const chunk of isReplay ? this.replayed(received) : received) {
        // A replay may repeat an answer when the turn continues, because its client does not count chunks.
        if (!isReplay && !known.has(chunk)) early.add(keyOf(chunk));
        yield* response.add(chunk);
      }
    }
    for await (const event of this.events(turnId, after, signal)) {
      const chunk = reader.read(event);
      // A reset removes the step with the answers that were sent, so later ones must be sent.
      if (chunk?.type === UI_RESET) early.clear();
      // When the client reconnects, the answer is one stored chunk. It must be one chunk here too.
      if (chunk && !early.delete(keyOf(chunk))) yield* response.add(chunk);
      if (event.type === SETTLED) {
        const end = event.data as unknown as AnswerEnd;
        if (response.isEmptyAfter(end)) await this.warnOfEmpty(turnId);
        yield* response.ended(end);
        return;
      }
      // The response stays open while the turn waits for a signal that is not an answer of the user.
      const last = event.type === WAITING && response.waiting();
      if (!last) continue;
      yield* last;
      return;
    }
    // The turn was deleted, its session was revoked or exceeded its lifetime, or this process stops.
    yield CUT;
  }

  /** Warns once for each orchestrator whose turns complete without chunks that a page can show. Never rejects. */
  private async warnOfEmpty(turnId: string): Promise<void> {
    const turn = await this.turns.get(turnId).catch(() => undefined);
    if (!turn || this.warned.has(turn.orchestrator)) return;
    this.warned.add(turn.orchestrator);
    this.logger.warn(httpMessages.emptyAnswer(turn.orchestrator));
  }

  private replayed(chunks: readonly UIChunk[]): readonly UIChunk[] {
    return this.protocol === 6 ? withoutAnswered(replay(chunks)) : replay(chunks);
  }

  /** Yields the events after an offset, and those that follow. Continues after an outage of the store. */
  private async *events(turnId: string, from: number, signal: AbortSignal): AsyncGenerator<TurnEvent, void> {
    for (let after = from; ;) {
      try {
        for await (const event of this.turns.readEvents(turnId, { after, signal })) {
          after = event.offset;
          yield event;
        }
        return;
      } catch (error) {
        if (!StoreUnavailableError.isInstance(error) || signal.aborted) throw error;
        await pause(signal);
      }
    }
  }

  private async storedEvents(turnId: string): Promise<TurnEvent[]> {
    const events: TurnEvent[] = [];
    for (;;) {
      const page = await this.log.read(turnId, events.at(-1)?.offset ?? 0, PAGE);
      events.push(...page);
      if (page.length < PAGE) return events;
    }
  }
}

/** Identifies an answer of the user by the approval request or the tool call that it answers. */
function keyOf({ type, approvalId, toolCallId }: UIChunk): string {
  return `${type} ${String(approvalId ?? toolCallId)}`;
}
