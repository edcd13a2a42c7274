import { type Patch } from '../common/patch.js';
import { Allow, ArrayMaxSize, IsArray } from 'class-validator';
import { checkInput, Must, MustBeInteger, MustBeName, MustBeTime, Optional } from '../common/check-input.js';
import { isName } from '../common/ids.js';
import { isFields, toJsonObject } from '../common/json.js';
import {
  type OrchestrationProgress,
  type SequenceMove,
  TOOL_HISTORY,
  type ToolOutcome,
  type ToolUse,
} from './orchestration-state.js';
import { toTokenCounts, type TokenCounts } from '../common/token-counts.js';

const OUTCOMES: readonly ToolUse['outcome'][] = ['succeeded', 'failed', 'admitted'];

const isIndex = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

/** Validates the id of a tool call, which models choose (FIX-63). */
const MustBeCallId = (): PropertyDecorator =>
  Must((value) => typeof value === 'string' && value !== '', 'must be a non-empty string.');

/** Options of a tool use. */
export class ToolUseOptions {
  /**
   * The model's id of the call, of any length. Uses with the same id count once, among the last 100 uses of the session outside of
   * turns. Default: each use counts.
   */
  @Optional()
  @MustBeCallId()
  callId?: string;

  /**
   * The outcome. A failed use is in the history, for `tool_failed`, but is not a recent tool and moves no sequence.
   * Default `succeeded`.
   */
  @Optional()
  @Must((value) => value === 'succeeded' || value === 'failed', 'must be succeeded or failed.')
  outcome?: ToolOutcome;

  /**
   * The model's arguments, as JSON. The same `callId` with another input is rejected (FIX-11). Default: inputs are not
   * compared.
   */
  @Allow()
  input?: unknown;
}

/** Options of a tool use with a plan. */
export class ToolUsageOptions extends ToolUseOptions {
  /**
   * The user's message, for `message_matches`, which is evaluated with this call. It is not stored. Default: none; no
   * condition on the message activates a step.
   */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be a string.')
  message?: string;
}

/** Options of an admission. */
export class ToolAdmissionOptions {
  /**
   * Identifies the call, by an id of any length, among the last 100 uses of the session. The same id is admitted again and counts once, so that
   * a retry continues the call. Default: a new id.
   */
  @Optional()
  @MustBeCallId()
  callId?: string;

  /**
   * The model's arguments, as JSON. The same `callId` with another input is rejected (FIX-11). Default: inputs are not
   * compared.
   */
  @Allow()
  input?: unknown;
}

class ToolUseInput implements ToolUse {
  @MustBeName()
  tool!: string;

  @Optional()
  @MustBeName()
  step?: string;

  @MustBeTime()
  at!: string;

  @Optional()
  @MustBeName()
  callId?: string;

  @Optional()
  @MustBeName()
  input?: string;

  @Optional()
  @MustBeName()
  turnId?: string;

  @Must((value) => OUTCOMES.includes(value as ToolUse['outcome']), `must be one of ${OUTCOMES.join(', ')}.`)
  outcome!: ToolUse['outcome'];

  @Optional()
  @Must(isFields, 'must be an object: the move of an admission.')
  moved?: SequenceMove;

  @Optional()
  @Must((value) => value === true, 'must be true, or absent.')
  mismatched?: true;
}

/**
 * The fields that `updateState` can change. `undefined` leaves a field unchanged, except `activeStep`, which is then
 * removed.
 */
export class OrchestrationUpdates implements Patch<OrchestrationProgress> {
  @Optional()
  @MustBeName()
  activeStep?: string | undefined;

  @Optional()
  @IsArray({ message: 'must be a list of tool names.' })
  @Must((value) => Array.isArray(value) && value.every(isName), 'must be a list of tool names.')
  recentlyUsedTools?: readonly string[];

  @Optional()
  @ArrayMaxSize(TOOL_HISTORY, { message: `must have at most ${TOOL_HISTORY} uses.` })
  @IsArray({ message: 'must be a list of uses.' })
  toolHistory?: readonly ToolUse[];

  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  sequenceIndex?: number;

  @Optional()
  @Must(
    (value) => isFields(value) && Object.values(value).every(isIndex),
    'must be an object of sequence indices by step name.',
  )
  progress?: Readonly<Record<string, number>>;

  @Optional()
  @Must(isFields, 'must be an object with token counts.')
  cumulativeTokenUsage?: TokenCounts;
}

/** Returns a validated copy of the updates, and the fields that they remove. @throws InvalidInputError */
export function toUpdates(updates: OrchestrationUpdates): {
  readonly updates: Patch<OrchestrationProgress>;
  readonly unset: readonly 'activeStep'[];
} {
  const { toolHistory, cumulativeTokenUsage, ...rest } = checkInput(OrchestrationUpdates, updates, 'updates');
  const unset = Object.hasOwn(updates, 'activeStep') && updates.activeStep === undefined ? ['activeStep' as const] : [];
  const checked = {
    ...rest,
    ...(toolHistory === undefined
      ? {}
      : {
          toolHistory: toolHistory.map((use, at) => ({
            ...checkInput(ToolUseInput, use, `updates.toolHistory[${at}]`),
          })),
        }),
    ...(cumulativeTokenUsage === undefined ? {} : { cumulativeTokenUsage: toTokenCounts(cumulativeTokenUsage) }),
  };
  return { updates: toJsonObject(checked, 'updates'), unset };
}
