import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { loggedId } from '../common/log-details.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { withoutProxy } from '../common/thrown.js';
import { isPermanent, toErrorRecord } from '../ledger/turn-error-record.js';
import { orchestratorMessages } from './orchestrator.messages.js';
import { type StepInfo } from './turn-context.js';

const logger = new Logger('ToolCalls');

/** The result of a tool whose failure is a result, too. */
export interface ToolResult {
  readonly value?: unknown;
  /** The message of the error, if the tool failed. */
  readonly failure?: string;
}

/**
 * Runs a tool, and returns its failure as the result of the call. The turn continues with it, so it is logged here (NST-22).
 * @throws what fails the attempt instead: a permanent error, an unavailable store, or anything after an abort
 */
export async function toolResult(
  { tool, turnId }: { readonly tool: string; readonly turnId: string },
  work: (info: StepInfo) => unknown,
  info: StepInfo,
): Promise<ToolResult> {
  try {
    return { value: await work(info) };
  } catch (thrown) {
    const error = withoutProxy(thrown);
    if (info.signal.aborted || isPermanent(error) || StoreUnavailableError.isInstance(error)) throw error;
    // A single string, because Nest would log a warning's trace as a second entry.
    logger.warn(`${orchestratorMessages.toolFailed(tool, loggedId(turnId))}\n${traceOf(error)}`);
    return { failure: toErrorRecord(error).message };
  }
}
