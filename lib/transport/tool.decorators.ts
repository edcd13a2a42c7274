import { applyDecorators, UseInterceptors } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { type AgentRef } from '../orchestration/agent-ref.js';
import { ToolUseInterceptor } from './tool-use.interceptor.js';

/** What `@RequireTool` asks for (NST-14). */
export interface RequiredTool {
  readonly tool: string;
  /** Whose plan must allow it. Default: the only agent that has one. */
  readonly agent?: AgentRef;
  /** Whether what comes of the handler is recorded. `false` for a handler that does it itself. Default true. */
  readonly record?: boolean;
}

export const ToolRequirement = Reflector.createDecorator<RequiredTool>();

/**
 * For handlers that are a tool: `ToolGuard` lets a request through only while the session's plan allows the tool, and its use is
 * recorded afterwards: as one that failed when the handler throws (NST-14). On a class it holds for all of its handlers.
 */
export function RequireTool(required: string | RequiredTool): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ToolRequirement(typeof required === 'string' ? { tool: required } : required),
    UseInterceptors(ToolUseInterceptor),
  );
}
