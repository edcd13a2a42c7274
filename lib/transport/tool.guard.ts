import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { OrchestrationService } from '../orchestration/orchestration.service.js';
import { admitUse } from './admitted-use.js';
import { requiredSession } from './carried-session.js';
import { handlerName } from './handler-name.js';
import { ToolRequirement } from './tool.decorators.js';

/**
 * Lets a request to a handler with `@RequireTool()` through only when the plan of its session allows the tool now; else 403, as
 * the plan's `onViolation` says (NST-14). Comes after `SessionGuard`: `@UseGuards(SessionGuard, ToolGuard)`. Other handlers pass.
 *
 * It reserves nothing: of two requests at the same time both may pass. In turns that cannot be, see `turn.tools`.
 */
@Injectable()
export class ToolGuard implements CanActivate {
  constructor(
    private readonly orchestration: OrchestrationService,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const required = this.reflector.getAllAndOverride(ToolRequirement, [context.getHandler(), context.getClass()]);
    if (!required) return true;
    const { tool, agent, record = true } = required;
    const session = requiredSession(context, `requires the tool ${tool}`, 'AuthGuard, SessionGuard, ToolGuard');
    const orchestration = agent === undefined ? this.orchestration : this.orchestration.of(agent);
    if (!orchestration.hasPlan) {
      throw new SessionsConfigurationError(
        `${handlerName(context)} requires the tool ${tool}, and no plan in this process says whether it is allowed: register the ` +
          'agent with SessionsModule.forFeature([...]).',
      );
    }
    await orchestration.assertToolAllowed(session.id, tool);
    admitUse(context, async (outcome) => {
      if (record) await orchestration.processToolUsage(session.id, tool, { outcome });
    });
    return true;
  }
}
