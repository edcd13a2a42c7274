import { type JsonValue } from '../common/json.js';

/** Tells the steps of a turn apart (BOT-30): the same name may occur again in another iteration, intent or place. */
export interface StepKey {
  readonly iteration: number;
  readonly intent: string;
  readonly name: string;
  /** From 0: how often the name occurred before in this iteration and intent. */
  readonly occurrence: number;
}

/** A step's stored result; an attempt that comes to the step again gets it instead of running the step. */
export interface StoredStep extends StepKey {
  readonly value: JsonValue;
}

/** What a wait stored as its step's result. */
export type WaitResult = { readonly received: true; readonly payload: JsonValue } | { readonly received: false };
