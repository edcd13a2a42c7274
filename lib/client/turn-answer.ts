import { type EmittedEvent, type NewTurnEvent } from '../ledger/turn-event.js';
import { type TurnEnd, type TurnWaiting } from '../turn/turn-result.js';
import { type TurnStreamEvent } from '../turn/turn-stream-event.js';
import { readTurnEvents, type TurnEventsOptions } from './turn-events.js';

/** The answer of a turn after an event. */
export interface TurnAnswer<Emitted extends EmittedEvent = NewTurnEvent> {
  /**
   * The text to show. It never gets shorter while the turn runs: when a new attempt begins, it stays until the text of
   * the new attempt is as long. After success it is the reply of the turn, if that has text.
   */
  readonly text: string;
  /** The event. */
  readonly event: TurnStreamEvent<Emitted>;
  /** The signals that the turn awaits. Absent for other events. */
  readonly waiting?: TurnWaiting;
  /** How the turn ended. Absent for all events but the last. */
  readonly settled?: TurnEnd;
}

/** The options of `readAnswer`. */
export interface AnswerOptions<Emitted extends EmittedEvent = NewTurnEvent> extends Omit<TurnEventsOptions, 'after'> {
  /**
   * Returns the text that an emitted event appends. Default: for events of type `delta`, their data if it is a string,
   * or the `text` of their data.
   */
  readonly textOf?: (event: Emitted) => string | undefined;
}

/**
 * Reads the answer of a turn from its first event, and yields its text after each event. It handles new attempts, which
 * emit their text from the start (DAY-21). For a handler that continues with `turn.emitted()`, use `readTurnEvents`.
 * @throws as `readTurnEvents`
 */
export async function* readAnswer<Emitted extends EmittedEvent = NewTurnEvent>({
  textOf = deltaOf,
  ...options
}: AnswerOptions<Emitted>): AsyncGenerator<TurnAnswer<Emitted>, void, undefined> {
  let text = '';
  let attemptText = '';
  for await (const event of readTurnEvents<Emitted>(options)) {
    // A handler cannot emit the types that the module reserves.
    const known = event as TurnStreamEvent<never>;
    if (known.type === 'attempt') attemptText = '';
    else if (known.type === 'settled') text = known.data.code === undefined ? (known.data.reply ?? attemptText) : text;
    else if (known.type !== 'waiting') {
      attemptText += textOf(event as unknown as Emitted) ?? '';
      if (attemptText.length >= text.length) text = attemptText;
    }
    yield {
      text,
      event,
      ...(known.type === 'waiting' ? { waiting: known.data } : {}),
      ...(known.type === 'settled' ? { settled: known.data } : {}),
    };
  }
}

function deltaOf({ type, data }: EmittedEvent): string | undefined {
  if (type !== 'delta') return undefined;
  const text = typeof data === 'string' ? data : (data as { readonly text?: unknown } | null | undefined)?.text;
  return typeof text === 'string' ? text : undefined;
}
