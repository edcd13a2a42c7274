import { type JsonValue } from '../common/json.js';
import { type Patch } from '../common/patch.js';
import { type MessageDraft } from '../ledger/message.js';

/** Returned by a route if the turn needs no (further) intent. */
export const END_TURN: unique symbol = Symbol('END_TURN');

/** Changes and data besides the text of an answer. */
export interface OutcomeOptions<State = Record<string, unknown>, Data = unknown> {
  /** Merged into the state by top-level keys; `undefined` removes a key. Default: no change. */
  readonly state?: Patch<State>;
  /** `completed` ends the conversation. Default `awaiting-input`. */
  readonly status?: 'awaiting-input' | 'completed';
  /** JSON for the caller, in addition to the text. Default: none. */
  readonly data?: Data;
  /**
   * The messages that the turn adds to the conversation after the user's. Default: the reply as one assistant message,
   * after the parts that `uiStream` has streamed without a `finish`. Leading system messages go before the user's message.
   */
  readonly messages?: readonly MessageDraft[];
}

/** The result of an intent. */
export class TurnOutcome<State = Record<string, unknown>, Data = unknown> {
  constructor(
    readonly text: string | null,
    readonly options: OutcomeOptions<State, Data> = {},
  ) {}
}

/** Creates an answer in text. */
export function reply<State = Record<string, unknown>>(text: string): TurnOutcome<State, never>;
/** Creates an answer in text, with changes or data. */
export function reply<State = Record<string, unknown>, Data = unknown>(
  text: string,
  options?: OutcomeOptions<State, Data>,
): TurnOutcome<State, Data>;
export function reply<State, Data>(text: string, options?: OutcomeOptions<State, Data>): TurnOutcome<State, Data> {
  return shown(new TurnOutcome<State, Data>(text, options), reply);
}

/** Creates an outcome without a text, for example to change only messages or status. */
export function turnOutcome<State = Record<string, unknown>, Data = unknown>(
  options: OutcomeOptions<State, Data>,
): TurnOutcome<State, Data> {
  return shown(new TurnOutcome<State, Data>(null, options), turnOutcome);
}

/**
 * The type of `result.data` of an orchestrator class, such as `DataOf<typeof SupportDesk>`: what its methods pass as `data` to
 * `reply` and `turnOutcome` (DAY-05). `JsonValue` if the type of a method hides it, as the return type `TurnOutcome<State>` does.
 */
export type DataOf<Class extends abstract new (...args: never[]) => object> = KnownData<DataIn<InstanceType<Class>>>;

type KnownData<Data> = unknown extends Data ? JsonValue : Exclude<Data, undefined>;

type DataIn<Instance> = {
  [Key in keyof Instance]-?: Instance[Key] extends (...args: never[]) => infer Result
    ? OutcomeData<Awaited<Result>>
    : never;
}[keyof Instance];

type OutcomeData<Result> = Result extends TurnOutcome<infer _State, infer Data> ? Data : never;

/** Adds the stack of the caller as a hidden property, for errors about the values of the outcome (DAY-17). */
function shown<Outcome extends object>(outcome: Outcome, create: (...args: never[]) => unknown): Outcome {
  Error.captureStackTrace(outcome, create);
  return outcome;
}
