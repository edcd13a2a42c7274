import {
  Controller,
  HttpCode,
  Inject,
  Post,
  Req,
  type Type,
  UseFilters,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { type StateOperationResult } from '../../state/state-report.js';
import { type StateHttpRequest } from './state-call.js';
import { StateCalls } from './state-calls.js';
import { type StateControllerOptions } from './state-controller.options.js';
import { StateExceptionFilter } from './state-exception.filter.js';
import { describedAs } from './state-openapi.js';
import { StateRoute } from './state-route.js';
import { StateGuard } from './state.guard.js';

/**
 * The controller of the control plane, behind these guards. Its handlers take the request as it is: pipes of the application's own
 * do not see it.
 */
export function stateController({ guards, path }: StateControllerOptions & { path: string }): Type<unknown> {
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(...guards, StateGuard)
  @UseFilters(StateExceptionFilter)
  class StateController {
    constructor(@Inject(StateCalls) private readonly calls: StateCalls) {}

    @Post('describe')
    @HttpCode(200)
    @StateRoute()
    @describedAs('describe')
    describe(@Req() request: StateHttpRequest): Promise<StateOperationResult> {
      return this.calls.answer('describe', request);
    }

    @Post('reset')
    @HttpCode(200)
    @StateRoute()
    @describedAs('reset')
    reset(@Req() request: StateHttpRequest): Promise<StateOperationResult> {
      return this.calls.answer('reset', request);
    }

    @Post('compact')
    @HttpCode(200)
    @StateRoute()
    @describedAs('compact')
    compact(@Req() request: StateHttpRequest): Promise<StateOperationResult> {
      return this.calls.answer('compact', request);
    }
  }
  return StateController;
}
