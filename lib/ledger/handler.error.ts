import { SessionsError } from '../common/sessions.error.js';

/** @inline */
interface HandlerErrorOptions extends ErrorOptions {
  /** True if a retry cannot succeed. Default true. */
  readonly permanent?: boolean;
  /** The sentence for logs, without ids and values. Default: none. */
  readonly logged?: string;
  /** The fields of the error. Default: none. */
  readonly details?: Partial<
    Pick<HandlerError, 'callId' | 'intent' | 'key' | 'known' | 'orchestrator' | 'path' | 'rule' | 'step' | 'tool'>
  >;
}

/**
 * A route, an intent, a step or another part of a handler breaks a rule of this package. HTTP 500.
 *
 * `code` names the rule, and the message says what to change:
 * - `UNKNOWN_INTENT` (BOT-03) and `NO_INTENT` (FIX-08): the route chose an intent that does not exist, or none,
 * - `ORCHESTRATOR_RESULT`: a route, an intent or an outcome returned something else than it may,
 * - `STATE_SCHEMA` (BOT-07): the new state does not match `stateSchema`. None of the changes are stored,
 * - `STEP_KEY_REQUIRED` (FIX-02) and `MODEL_KEY_REQUIRED` (AIS-04): parallel steps, or calls of a durable model, need keys. A later
 *   attempt could not tell their results apart,
 * - `STEP_CONTEXT` (FIX-82): a limiter or pool has started a step in the asynchronous context of another call, or outside of its
 *   turn. A retry would not find it. The step has not run,
 * - `PARALLEL_ANSWERS` (AIS-14): two intents stream an answer to the chat at the same time,
 * - `TOOL_CALL_CONFLICT` (FIX-11): the id of a tool call was already used with another tool or input. HTTP 409. The tool has not run,
 * - `SCRIPT_OVER` and `MODEL_SCRIPT_OVER`: a scripted orchestrator or model of a test has no answer left.
 */
export class HandlerError extends SessionsError {
  static override readonly codes = [
    'MODEL_KEY_REQUIRED',
    'MODEL_SCRIPT_OVER',
    'NO_INTENT',
    'ORCHESTRATOR_RESULT',
    'PARALLEL_ANSWERS',
    'SCRIPT_OVER',
    'STATE_SCHEMA',
    'STEP_CONTEXT',
    'STEP_KEY_REQUIRED',
    'TOOL_CALL_CONFLICT',
    'UNKNOWN_INTENT',
  ] as const;

  /** True if a retry cannot succeed, so that the turn fails. False for `NO_INTENT`, and if a model chose an unknown intent. */
  readonly permanent: boolean;
  readonly orchestrator?: string;
  /** The intent that the route chose (`UNKNOWN_INTENT`). */
  readonly intent?: string;
  /** The intents of the orchestrator (`UNKNOWN_INTENT`). */
  readonly known?: readonly string[];
  /** The path of the invalid value (`STATE_SCHEMA`). */
  readonly path?: string;
  /** The rule that the value breaks (`STATE_SCHEMA`). */
  readonly rule?: string;
  /** The name of the step (`STEP_KEY_REQUIRED`). */
  readonly step?: string;
  /** The key that the calls share (`MODEL_KEY_REQUIRED`); absent if they have none. */
  readonly key?: string;
  /** The model's id of the call (`TOOL_CALL_CONFLICT`). */
  readonly callId?: string;
  /** The tool that the id belongs to (`TOOL_CALL_CONFLICT`). */
  readonly tool?: string;

  /** @hidden */
  constructor(
    readonly code: (typeof HandlerError.codes)[number],
    message: string,
    { permanent = true, logged, details, ...options }: HandlerErrorOptions = {},
  ) {
    super(message, options);
    this.permanent = permanent;
    Object.assign(this, details);
    Object.defineProperty(this, 'forLog', { value: logged });
  }
}
