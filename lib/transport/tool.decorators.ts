import { applyDecorators, UseInterceptors } from '@nestjs/common';
import { MethodMark } from '../common/method-mark.js';
import { type AgentRef } from '../orchestration/agent-ref.js';
import { ToolUseInterceptor } from './tool-use.interceptor.js';

/** The options of `@RequireTool` (NST-14). */
export interface RequiredTool {
  readonly tool: string;
  /** The agent whose plan must allow the tool. Default: the only agent with a plan. */
  readonly agent?: AgentRef;
  /**
   * Whether to admit the use and record its outcome. Set `false` for a handler that records its uses itself: the check
   * is then advisory, see `OrchestrationService.assertToolAllowed`. Default true.
   */
  readonly record?: boolean;
}

/** The mark of {@link RequireTool}. */
export const REQUIRED_TOOL = new MethodMark<RequiredTool>('@RequireTool()', 'agent-sessions:require-tool');

/**
 * Marks a handler as a tool. It runs only if the session's plan admits the use, which is checked and recorded in one
 * operation (FIX-21). Otherwise it fails with 403, depending on the plan's `onViolation`. The outcome is recorded at
 * the end: `failed` if the handler throws (NST-14). On a class it applies to all handlers. Requires `ToolGuard`; the start
 * stops if a handler lacks it (FIX-72).
 */
export function RequireTool(required: string | RequiredTool): MethodDecorator & ClassDecorator {
  return applyDecorators(
    REQUIRED_TOOL.decorate(typeof required === 'string' ? { tool: required } : required),
    UseInterceptors(ToolUseInterceptor),
  );
}
