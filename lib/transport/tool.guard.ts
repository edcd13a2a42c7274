import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { OrchestrationService } from '../orchestration/orchestration.service.js';
import { deferUse } from './admitted-use.js';
import { requiredSession } from './carried-session.js';
import { handlerName } from './transport.js';
import { REQUIRED_TOOL, type RequiredTool } from './tool.decorators.js';
import { transportMessages } from './transport.messages.js';

/**
 * Finds the session and the plan for handlers with `@RequireTool()` (NST-14), whose interceptor then admits the use. Handlers
 * without it are ignored. Place it after `SessionGuard`: `@UseGuards(SessionGuard, ToolGuard)`.
 */
@Injectable()
export class ToolGuard implements CanActivate {
  constructor(
    private readonly orchestration: OrchestrationService,
    private readonly reflector: Reflector,
  ) {}

  canActivate(context: ExecutionContext): boolean {
    const required = this.reflector.getAllAndOverride<RequiredTool | undefined>(REQUIRED_TOOL.key, [
      context.getHandler(),
      context.getClass(),
    ]);
    if (!required) return true;
    const { tool, agent, record = true } = required;
    const session = requiredSession(context, `requires the tool ${tool}`, 'AuthGuard, SessionGuard, ToolGuard');
    const orchestration = agent === undefined ? this.orchestration : this.orchestration.of(agent);
    if (!orchestration.hasPlan) {
      throw new SessionsConfigurationError(transportMessages.noPlan(handlerName(context), tool));
    }
    deferUse(context, async () => {
      if (record) {
        const use = await orchestration.admitTool(session.id, tool);
        return (outcome) => use.record(outcome);
      }
      await orchestration.assertToolAllowed(session.id, tool);
      return () => Promise.resolve();
    });
    return true;
  }
}
