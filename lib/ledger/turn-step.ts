import { type JsonValue } from '../common/json.js';
import { sha256 } from '../common/digests.js';
import { isName } from '../common/ids.js';

/**
 * The origin of a stored step: `turn.step`, `turn.tools.use`, `turn.waitFor`, the `onTimeout` of a wait, a route's
 * decision, or a whole iteration of the turn.
 */
export type StepKind = 'step' | 'tool' | 'wait' | 'timeout' | 'route' | 'iteration';

/**
 * Identifies a step within its turn (FIX-01, FIX-02). Iteration, intent and parent form its scope: the same name in
 * another scope is another step.
 */
export interface StepKey {
  readonly kind: StepKind;
  readonly iteration: number;
  /** The intent; `''` outside of intents. */
  readonly intent: string;
  /** The {@link stepId} of the enclosing step or tool call; `''` if none exists. */
  readonly parent: string;
  readonly name: string;
  /** The caller's key. Default: the number of earlier calls with this kind, scope and name, from 0. */
  readonly key: string | number;
}

/** The stored result of a step. Later attempts of the turn use it and do not run the step again. */
export interface StoredStep extends StepKey {
  readonly value: JsonValue;
}

/** The result of a wait, stored as its step. */
export type WaitResult = { readonly received: true; readonly payload: JsonValue } | { readonly received: false };

/** Returns the key as one line of JSON, which is unique. {@link stepKeyOf} parses it. */
export function stepText({ kind, iteration, intent, parent, name, key }: StepKey): string {
  return JSON.stringify([kind, iteration, intent, parent, name, key]);
}

/** Parses the result of {@link stepText}. */
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

/** Returns a name of a step for the id of a tool call, which may have any length and any characters. */
export function callName(callId: string): string {
  return isName(callId) ? callId : sha256(callId);
}

/** Returns the key as 64 hexadecimal digits, short enough for any index. */
export function stepId(key: StepKey): string {
  return stepIdOf(stepText(key));
}

/** Returns the id for the result of {@link stepText}. */
export function stepIdOf(text: string): string {
  return sha256(text);
}
