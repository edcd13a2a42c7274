import { Logger } from '@nestjs/common';
import { StoreUnavailableError } from '../../common/sessions.error.js';
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
import { repeatWhileUnavailable, pause } from './while-unavailable.js';

/** Page size for reading stored events. */
const PAGE = 500;

/** The chunks of an answer that a response contains. */
export interface ChatRange {
  readonly turnId: string;
  /** The segment that the response begins with, see `segmentsOf`. */
  readonly segment: number;
  /**
   * The number of chunks of this response that the client has received. Absent: the response begins with a replay, which is
   * the fewest chunks that show the whole answer so far; the segment is then 0.
   */
  readonly skip?: number;
  /**
   * True if the client resumes: the response begins with the chunks that are already stored, then with the answers of the
   * user that the turn has received but not yet continued with (AIS-32). Default false: the turn has received none, or
   * this client sent them.
   */
  readonly isResumed?: boolean;
}

/** The end of chunks that are incomplete. The connection must be broken, so that the client resumes. */
export const CUT = Symbol('cut');

/** The chunks of answers, from the events of their turns (AIS-13, AIS-14). */
export class ChatStream {
  private readonly logger = new Logger(ChatStream.name);
  /** The orchestrators whose turns without an answer have been logged. */
  private readonly silent = new Set<string>();

  constructor(
    private readonly turns: Pick<TurnService, 'get' | 'readEvents'>,
    private readonly log: Pick<TurnEventLog, 'read'>,
    private readonly ledger: Pick<TurnLedger, 'signals'>,
    private readonly protocol: Protocol,
  ) {}

  /**
   * Yields the stored chunks, then those that follow, until the answer ends or waits for its user. Waits while the store
   * is unavailable (AIS-15).
   */
  async *chunks(range: ChatRange, signal: AbortSignal): AsyncGenerator<UIChunk | typeof CUT, void> {
    let skip = range.skip ?? 0;
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
    // WorkflowChatTransport would repeat its request for ever without a chunk.
    if (skipped) yield skipped;
  }

  /** Returns all stored chunks of a turn. */
  async stored(turnId: string): Promise<UIChunk[]> {
    return chunksOf(await this.storedEvents(turnId));
  }

  /** Returns all stored chunks of a turn, and the answers of the user that it has received but not yet continued with. */
  async received(turnId: string): Promise<readonly UIChunk[]> {
    return this.withReceived(turnId, await this.stored(turnId));
  }

  private withReceived(turnId: string, chunks: readonly UIChunk[]): Promise<readonly UIChunk[]> {
    return withReceivedAnswers(chunks, () => this.ledger.signals(turnId));
  }

  private async *response(
    { turnId, segment, skip, isResumed = false }: ChatRange,
    signal: AbortSignal,
  ): AsyncGenerator<UIChunk | typeof CUT, void> {
    const response = new ResponseChunks(turnId, segment);
    // The reader needs all events from the first one, because a large chunk is stored as several events.
    const reader = new UIEventReader();
    let after = 0;
    // Protocol 6 lacks a chunk for a reset. A client that has no chunks yet gets a replay, which omits replaced chunks.
    const isReplay = skip === undefined || (skip === 0 && segment === 0 && this.protocol === 6);
    /** The answers of the user that the client gets before the turn continues with them. */
    const early = new Set<string>();
    if (isReplay || isResumed) {
      const events = await repeatWhileUnavailable(() => this.storedEvents(turnId), signal);
      after = events.at(-1)?.offset ?? 0;
      const stored = events.flatMap((event) => reader.read(event) ?? []);
      const known = new Set(stored);
      const received = await repeatWhileUnavailable(() => this.withReceived(turnId, stored), signal);
      for (const chunk of isReplay ? this.replayed(received) : received) {
        if (!isReplay && !known.has(chunk)) early.add(keyOf(chunk));
        yield* response.add(chunk);
      }
    }
    for await (const event of this.events(turnId, after, signal)) {
      const chunk = reader.read(event);
      if (chunk?.type === UI_RESET) early.clear();
      // The client continues by the number of its chunks, so it must get each answer only once.
      if (chunk && !early.delete(keyOf(chunk))) yield* response.add(chunk);
      const last =
        event.type === SETTLED
          ? response.ended(event.data as unknown as AnswerEnd)
          : event.type === WAITING && response.waiting();
      if (!last) continue;
      if (event.type === SETTLED && response.isEmpty) await this.warnOfEmpty(turnId);
      yield* last;
      return;
    }
    yield CUT;
  }

  /** Warns once for each orchestrator whose turns complete with nothing that a page can show. Never rejects. */
  private async warnOfEmpty(turnId: string): Promise<void> {
    const turn = await this.turns.get(turnId).catch(() => undefined);
    if (!turn || this.silent.has(turn.orchestrator)) return;
    this.silent.add(turn.orchestrator);
    this.logger.warn(
      `A turn of the orchestrator ${turn.orchestrator} has completed without an answer, so the chat shows nothing. Return ` +
        'reply(text) or streamReply(turn, ...). The chat does not show changes of the state, or events of turn.emit().',
    );
  }

  private replayed(chunks: readonly UIChunk[]): readonly UIChunk[] {
    return this.protocol === 6 ? withoutAnswered(replay(chunks)) : replay(chunks);
  }

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

/** Identifies the answer to a request. */
function keyOf({ type, approvalId, toolCallId }: UIChunk): string {
  return `${type} ${String(approvalId ?? toolCallId)}`;
}
