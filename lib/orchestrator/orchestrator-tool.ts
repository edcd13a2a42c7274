import { checkInput, Must, Optional } from '../common/check-input.js';
import { assertName } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { sha256 } from '../common/sha-256.js';
import { handOut } from '../turn/running-turn.js';
import { TurnStoppedError } from '../turn/turn-stopped.error.js';
import { TurnTimeoutError } from '../ledger/turn.errors.js';
import { type TurnResult } from '../turn/turn-result.js';
import { childSession, inFreshSession } from './child-session.js';
import { type OrchestratorPlace } from './orchestrator-place.js';
import {
  TOOL_INPUT_SCHEMA,
  type OrchestratorToolInput,
  type ToolInputSchema,
  toToolInput,
} from './tool-input-schema.js';
import { type TurnContext } from './turn-context.js';

export { type OrchestratorToolInput };

/** What models and their providers take for a tool's name. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** How `handle.asTool` shows an orchestrator to another one. */
export class OrchestratorToolOptions {
  /** 1 to 64 letters, digits, _ or -. Default: the orchestrator's name with _ in place of what else it has. */
  @Optional()
  @Must((value) => typeof value === 'string' && NAME.test(value), 'must be 1 to 64 letters, digits, _ or -.')
  readonly name?: string;

  /** Tells the model what it is for. Default: a sentence with the orchestrator's name. */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be a text.')
  readonly description?: string;

  /** `child`, the default: one conversation, in the session `<caller's session>/<name>`. `fresh`: a session for each call, which expires with it. */
  @Optional()
  @Must((value) => value === 'child' || value === 'fresh', 'must be child or fresh.')
  readonly session?: 'child' | 'fresh';
}

/** What the caller says of a call, as the AI SDK does. */
export interface OrchestratorToolCall {
  /** The model's id of the call, unique in the calling turn. The same call of a retried turn gets the same turn. */
  readonly toolCallId: string;
  /** Aborting it cancels the call's turn. */
  readonly abortSignal?: AbortSignal | undefined;
}

/** What the model gets. */
export type OrchestratorToolResult = Pick<TurnResult, 'status' | 'reply' | 'data'>;

/** An orchestrator as a tool, bound to one turn of another one (BOT-50). */
export interface OrchestratorTool {
  readonly name: string;
  readonly description: string;
  /** JSON schema of {@link OrchestratorToolInput}; a Standard Schema as well. */
  readonly inputSchema: ToolInputSchema;
  /**
   * Runs one turn and waits for it, as a use of a tool by `turn.tools.use` of the calling turn: its plan must allow the tool,
   * and its tool history contains the use (FIX-24). Arguments besides `input` are ignored. Not inside a step or another tool.
   * @throws ToolNotAllowedError; as `OrchestratorHandle.execute`; TurnReentryError inside a turn of the session that it would speak in;
   * SessionConflictError when the child session's id is somebody else's
   */
  readonly execute: (args: OrchestratorToolInput, call: OrchestratorToolCall) => Promise<OrchestratorToolResult>;
}

/** The parts of the calling turn that the tool needs. */
export type OrchestratorToolCaller = Pick<TurnContext, 'id' | 'session' | 'signal' | 'tools'>;

/** @param orchestrator the name of the one that is the tool */
export function orchestratorTool(
  orchestrator: string,
  place: () => OrchestratorPlace,
  caller: OrchestratorToolCaller,
  options: OrchestratorToolOptions = {},
): OrchestratorTool {
  const {
    name = orchestrator.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64),
    description = `Asks ${orchestrator} and waits for its answer.`,
    session = 'child',
  } = checkInput(OrchestratorToolOptions, options, 'options');
  const execute: OrchestratorTool['execute'] = async (args, { toolCallId, abortSignal }) => {
    const checked = toToolInput(args);
    if (!('value' in checked)) throw new InvalidInputError('args', checked.issues[0].message);
    assertName(toolCallId, 'toolCallId');
    const { turns, sessions } = place();
    const key = hashOf(caller.id, toolCallId);
    const { input } = checked.value;
    const speak = async (signal: AbortSignal): Promise<OrchestratorToolResult> => {
      const ask = (sessionId: string): Promise<TurnResult> =>
        turns.execute(orchestrator, input, {
          sessionId,
          idempotencyKey: key,
          attributes: { callerTurnId: caller.id, toolCallId },
          signal,
        });
      const { status, reply, data } =
        session === 'child'
          ? await ask(await childSession(sessions, caller.session, name))
          : await inFreshSession(turns, sessions, caller.session, `${name}~${key.slice(0, 32)}`, ask);
      return { status, reply, ...(data === undefined ? {} : { data }) };
    };
    return caller.tools.use(name, toolCallId, () => whileWanted(caller.signal, abortSignal, speak), { input });
  };
  return {
    name,
    description,
    inputSchema: TOOL_INPUT_SCHEMA,
    execute: (args, call) => handOut('asTool().execute', () => execute(args, call)),
  };
}

/**
 * Gives `work` a signal that is aborted when the calling turn is cancelled, or its model's call is. Where the turn is only
 * stopped here, to be attempted again, nobody waits any more, and what was begun goes on: the next attempt finds it.
 */
async function whileWanted<T>(
  turn: AbortSignal,
  call: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const either = call ? AbortSignal.any([turn, call]) : turn;
  either.throwIfAborted();
  const cancel = new AbortController();
  let stop: (() => void) | undefined;
  const stopped = new Promise<never>((_, reject) => {
    stop = () => {
      if (!isAttemptedAgain(turn)) cancel.abort(either.reason);
      reject(either.reason as Error);
    };
    either.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([work(cancel.signal), stopped]);
  } finally {
    if (stop) either.removeEventListener('abort', stop);
  }
}

function isAttemptedAgain({ reason }: AbortSignal): boolean {
  return (reason instanceof TurnStoppedError && reason.why !== 'cancelled') || reason instanceof TurnTimeoutError;
}

function hashOf(turnId: string, toolCallId: string): string {
  return sha256(JSON.stringify([turnId, toolCallId]));
}
