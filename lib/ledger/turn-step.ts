import { type JsonValue } from '../common/json.js';
import { sha256 } from '../common/sha-256.js';

/**
 * What a stored step is the result of: `turn.step`, `turn.tools.use`, `turn.waitFor`, the `onTimeout` of a wait, a route's
 * decision, or a whole iteration of the turn.
 */
export type StepKind = 'step' | 'tool' | 'wait' | 'timeout' | 'route' | 'iteration';

/**
 * Identifies a step within its turn (FIX-01, FIX-02). Iteration, intent and parent are its scope: the same name in another
 * scope is another step.
 */
export interface StepKey {
  readonly kind: StepKind;
  readonly iteration: number;
  /** `''` for a step that belongs to no intent. */
  readonly intent: string;
  /** The {@link stepId} of the step or tool call that encloses it; `''` outside of both. */
  readonly parent: string;
  readonly name: string;
  /** The caller's key; without one, the number of earlier calls with this kind, scope and name, from 0. */
  readonly key: string | number;
}

/** A step's stored result. Later attempts of the turn get it instead of running the step again. */
export interface StoredStep extends StepKey {
  readonly value: JsonValue;
}

/** The result that a wait stores as its step. */
export type WaitResult = { readonly received: true; readonly payload: JsonValue } | { readonly received: false };

/** The key as one line of JSON: equal for equal keys only. {@link stepKeyOf} reads it. */
export function stepText({ kind, iteration, intent, parent, name, key }: StepKey): string {
  return JSON.stringify([kind, iteration, intent, parent, name, key]);
}

/** Reads what {@link stepText} wrote. */
export function stepKeyOf(text: string): StepKey {
  const [kind, iteration, intent, parent, name, key] = JSON.parse(text) as [
    StepKind,
    number,
    string,
    string,
    string,
    string | number,
  ];
  return { kind, iteration, intent, parent, name, key };
}

/** The key as 64 hexadecimal digits: short enough for any index. */
export function stepId(key: StepKey): string {
  return stepIdOf(stepText(key));
}

/** The same from what {@link stepText} wrote. */
export function stepIdOf(text: string): string {
  return sha256(text);
}
