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
import { toTokenUsage, type TokenUsage } from '../common/token-usage.js';

const OUTCOMES: readonly ToolUse['outcome'][] = ['succeeded', 'failed', 'admitted'];

const isIndex = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

/** About a use of a tool. */
export class ToolUseOptions {
  /**
   * The model's id of the call: the same id again counts once, among the last 100 uses of the session outside of turns.
   * Default: each use counts.
   */
  @Optional()
  @MustBeName()
  callId?: string;

  /** A use that failed is in the history, for `tool_failed`; it is no recent tool and moves no sequence. Default `succeeded`. */
  @Optional()
  @Must((value) => value === 'succeeded' || value === 'failed', 'must be succeeded or failed.')
  outcome?: ToolOutcome;

  /** The model's arguments, as JSON: the same `callId` with another input is refused (FIX-11). Default: inputs are not compared. */
  @Allow()
  input?: unknown;
}

/** About a use of a tool, for those who know the plan. */
export class ToolUsageOptions extends ToolUseOptions {
  /** The user's message, for `message_matches`, which is evaluated with this call. It is not stored. Default: none; no message leads to a step. */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be a text.')
  message?: string;
}

/** About a use of a tool that is to be admitted. */
export class ToolAdmissionOptions {
  /**
   * Identifies the call, among the last 100 uses of the session. The same id again is admitted again and counts once, so that a
   * retry of the same call continues it. Default: a new id.
   */
  @Optional()
  @MustBeName()
  callId?: string;

  /** The model's arguments, as JSON: the same `callId` with another input is refused (FIX-11). Default: inputs are not compared. */
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
  @Must(isFields, 'must be an object: what an admission moved.')
  moved?: SequenceMove;
}

/** What `updateState` may change; a key that is `undefined` is left as it is, but `activeStep`, which is then taken away. */
export class OrchestrationUpdates implements Partial<OrchestrationProgress> {
  @Optional()
  @MustBeName()
  activeStep?: string | undefined;

  @Optional()
  @IsArray({ message: 'must be a list of tool names.' })
  @Must((value) => Array.isArray(value) && value.every(isName), 'must be a list of tool names.')
  recentlyUsedTools?: readonly string[];

  @Optional()
  @ArrayMaxSize(TOOL_HISTORY, { message: `must not have more than ${TOOL_HISTORY} uses.` })
  @IsArray({ message: 'must be a list of uses.' })
  toolHistory?: readonly ToolUse[];

  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  sequenceIndex?: number;

  @Optional()
  @Must((value) => isFields(value) && Object.values(value).every(isIndex), 'must be an object of indices by step.')
  progress?: Readonly<Record<string, number>>;

  @Optional()
  @Must(isFields, 'must be an object with numbers of tokens.')
  cumulativeTokenUsage?: TokenUsage;
}

/** A copy of the updates, checked; and which fields they take away. @throws InvalidInputError */
export function toUpdates(updates: OrchestrationUpdates): {
  readonly updates: Partial<OrchestrationProgress>;
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
    ...(cumulativeTokenUsage === undefined ? {} : { cumulativeTokenUsage: toTokenUsage(cumulativeTokenUsage) }),
  };
  return { updates: toJsonObject(checked, 'updates'), unset };
}
