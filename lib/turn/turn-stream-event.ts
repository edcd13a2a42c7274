import { type EmittedEvent, type NewTurnEvent } from '../ledger/turn-event.js';
import { type TurnEnd, type TurnWaiting } from './turn-result.js';

// The entry `/client` exports this type. Front ends compile it without Nest.

/**
 * An event as a client receives it: one of the handler, or one of the module. TypeScript tells them apart by `type` if the
 * type argument lists the events of the handler: `{ type: 'delta'; data: { text: string } }`.
 */
export type TurnStreamEvent<Emitted extends EmittedEvent = NewTurnEvent> =
  | (Emitted & EventOffset)
  /** A new attempt begins. It repeats events of the attempt before, unless the handler continues with `turn.emitted()`. */
  | ({ readonly type: 'attempt'; readonly data: { readonly attempt: number } } & EventOffset)
  /** The turn awaits signals. */
  | ({ readonly type: 'waiting'; readonly data: TurnWaiting } & EventOffset)
  /** The last event. */
  | ({ readonly type: 'settled'; readonly data: TurnEnd } & EventOffset);

/** @inline */
interface EventOffset {
  /** The number of the event in its turn, from 1. Events of type `waiting` have that of the event before. */
  readonly offset: number;
}
