import { Reflector } from '@nestjs/core';
import { type AgentRef } from '../orchestration/agent-ref.js';

export interface RequiredTool {
  readonly tool: string;
  /** Whose plan must allow it. Default: the only agent that has one. */
  readonly agent?: AgentRef;
}

/** For handlers that are a tool: `ToolGuard` lets a request through only when the session's plan allows the tool now (ORC-28). */
export const RequireTool = Reflector.createDecorator<string | RequiredTool, RequiredTool>({
  transform: (required) => (typeof required === 'string' ? { tool: required } : required),
});
