import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { OrchestrationService } from '../orchestration/orchestration.service.js';
import { sessionOf } from './request-session.js';
import { RequireTool } from './tool.decorators.js';

/**
 * Lets a request to a handler with `@RequireTool()` through only when the plan of its session allows the tool now; else 403, as
 * the plan's `onViolation` says. Comes after `SessionGuard`: `@UseGuards(SessionGuard, ToolGuard)`. Other handlers pass.
 *
 * It checks, and records nothing: the handler says what came of it, with `OrchestrationService.processToolUsage`.
 */
@Injectable()
export class ToolGuard implements CanActivate {
  constructor(
    private readonly orchestration: OrchestrationService,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const required = this.reflector.getAllAndOverride(RequireTool, [context.getHandler(), context.getClass()]);
    if (!required) return true;
    const session = sessionOf(context);
    if (!session) {
      throw new SessionsConfigurationError(
        `${handlerOf(context)} requires the tool ${required.tool} of a session, and there ` +
          'is none: add @UseSession() to it, and SessionGuard before ToolGuard.',
      );
    }
    const { tool, agent } = required;
    const orchestration = agent === undefined ? this.orchestration : this.orchestration.of(agent);
    if (!orchestration.hasPlan) {
      throw new SessionsConfigurationError(
        `${handlerOf(context)} requires the tool ${tool}, and no plan in this process says whether it is allowed: register the ` +
          'agent with SessionsModule.forFeature([...]).',
      );
    }
    await orchestration.assertToolAllowed(session.id, tool);
    return true;
  }
}

function handlerOf(context: ExecutionContext): string {
  return `${context.getClass().name}.${context.getHandler().name}`;
}
