import { applyDecorators, UseInterceptors } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { type AgentRef } from '../orchestration/agent-ref.js';
import { ToolUseInterceptor } from './tool-use.interceptor.js';

/** What `@RequireTool` asks for (NST-14). */
export interface RequiredTool {
  readonly tool: string;
  /** Whose plan must allow it. Default: the only agent that has one. */
  readonly agent?: AgentRef;
  /**
   * Whether the use is admitted and its outcome recorded. `false` for a handler that records its uses itself: then the check is
   * advisory, see `OrchestrationService.assertToolAllowed`. Default true.
   */
  readonly record?: boolean;
}

export const ToolRequirement = Reflector.createDecorator<RequiredTool>();

/**
 * For handlers that are a tool: the handler runs only when the session's plan admits the use, which is checked and recorded in one
 * operation (FIX-21); else 403, as the plan's `onViolation` says. The outcome is recorded when the handler ends: `failed` when it
 * throws (NST-14). Needs `ToolGuard`. On a class it holds for all of its handlers.
 */
export function RequireTool(required: string | RequiredTool): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ToolRequirement(typeof required === 'string' ? { tool: required } : required),
    UseInterceptors(ToolUseInterceptor),
  );
}
