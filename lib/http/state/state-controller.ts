import { HttpCode, Inject, Post, Req, type Type } from '@nestjs/common';
import { type StateOperationResult } from '../../state/state-report.js';
import { type ControllerOptions } from '../controllers/controllers.options.js';
import { GuardedController } from '../controllers/guarded-controller.js';
import { type HttpRequest } from '../controllers/http-request.js';
import { StateCalls } from './state-calls.js';
import { StateExceptionFilter } from './state-exception.filter.js';
import { describedAs } from './state-openapi.js';
import { StateGuard } from './state.guard.js';

/**
 * Creates the controller of the control plane, protected by these guards. Its handlers read the raw request, so the
 * application's pipes do not apply.
 */
export function stateController({ guards, path = 'state' }: ControllerOptions): Type<unknown> {
  @GuardedController({ path, guards: [...guards, StateGuard], filter: StateExceptionFilter })
  class StateController {
    constructor(@Inject(StateCalls) private readonly calls: StateCalls) {}

    @Post('describe')
    @HttpCode(200)
    @describedAs('describe')
    describe(@Req() request: HttpRequest): Promise<StateOperationResult> {
      return this.calls.answer('describe', request);
    }

    @Post('reset')
    @HttpCode(200)
    @describedAs('reset')
    reset(@Req() request: HttpRequest): Promise<StateOperationResult> {
      return this.calls.answer('reset', request);
    }

    @Post('compact')
    @HttpCode(200)
    @describedAs('compact')
    compact(@Req() request: HttpRequest): Promise<StateOperationResult> {
      return this.calls.answer('compact', request);
    }
  }
  return StateController;
}
