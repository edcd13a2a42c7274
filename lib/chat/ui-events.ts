import { isFields } from '../common/json.js';
import { type EmittedEvent, type NewTurnEvent, type TurnEvent } from '../ledger/turn-event.js';
import { type UIChunk } from './ui-message.js';

/** The type of the turn events that contain chunks. */
const UI_EVENT = 'ui';
/** The type of the event before the chunks of an iteration. */
const ITERATION_EVENT = 'ui-iteration';
/** The type of an event's data that contains a part of a chunk. */
const FRAGMENT = 'ui-fragment';
/** Splits JSON into strings of at most 15,000 characters, each of which needs less than the 65,536 bytes of an event. */
const FRAGMENTS = /.{1,15000}/gsu;

/** A part of the JSON of a chunk that is too large for one event, such as a file or the output of a tool. */
interface Fragment {
  readonly type: typeof FRAGMENT;
  readonly index: number;
  readonly isLast: boolean;
  readonly json: string;
}

/** Returns the events that store a chunk: usually one, and several for a large chunk. Emit them together. */
export function toUIEvents(chunk: UIChunk): EmittedEvent[] {
  const texts = JSON.stringify(chunk).match(FRAGMENTS) ?? [];
  if (texts.length === 1) return [{ type: UI_EVENT, data: chunk }];
  return texts.map((json, index) => {
    const data: Fragment = { type: FRAGMENT, index, isLast: index === texts.length - 1, json };
    return { type: UI_EVENT, data };
  });
}

/** Reads the chunks in the events of a turn. Use one reader for all events, from the first, in their order. */
export class UIEventReader {
  private json = '';

  /** @returns the chunk that ends with this event; `undefined` for other events, and in the middle of a chunk */
  read({ type, data }: NewTurnEvent): UIChunk | undefined {
    // A handler can use this type for its own events.
    if (type !== UI_EVENT || !isFields(data) || typeof data.type !== 'string') return undefined;
    const chunk = data as unknown as UIChunk | Fragment;
    if (!isFragment(chunk)) return chunk;
    // An attempt can end in the middle of a chunk. The next one begins with a whole chunk or a first fragment.
    this.json = chunk.index === 0 ? chunk.json : this.json + chunk.json;
    return chunk.isLast ? (JSON.parse(this.json) as UIChunk) : undefined;
  }
}

/** Returns the event before the chunks of an iteration, from the second iteration on. */
export function toIterationEvent(iteration: number): EmittedEvent {
  return { type: ITERATION_EVENT, data: iteration };
}

/** Returns whether an event is one of {@link toIterationEvent}. */
export function isIterationEvent({ type }: NewTurnEvent): boolean {
  return type === ITERATION_EVENT;
}

/** Returns the chunks of an iteration in the events of a turn; `undefined` if it has not begun. */
export function chunksOfIteration(events: readonly TurnEvent[], iteration: number): UIChunk[] | undefined {
  const iterations: TurnEvent[][] = [[]];
  let current = 0;
  for (const event of events) {
    if (isIterationEvent(event)) current = event.data as number;
    (iterations[current] ??= []).push(event);
  }
  return iterations[iteration] && chunksOf(iterations[iteration]);
}

/** Returns the chunks in the events of a turn. */
export function chunksOf(events: readonly TurnEvent[]): UIChunk[] {
  const reader = new UIEventReader();
  return events.flatMap((event) => reader.read(event) ?? []);
}

function isFragment(data: UIChunk | Fragment): data is Fragment {
  return data.type === FRAGMENT;
}
