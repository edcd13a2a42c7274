import { Controller, Get, Inject } from '@nestjs/common';
import { SESSIONS_ADAPTER, type SessionsAdapter } from 'nestjs-agent-sessions';

@Controller('health')
export class HealthController {
  constructor(@Inject(SESSIONS_ADAPTER) private readonly store: SessionsAdapter) {}

  /** Responds with 503 and the code STORE_UNAVAILABLE if the store does not answer. */
  @Get()
  async health(): Promise<{ status: string }> {
    await this.store.ping();
    return { status: 'ok' };
  }
}
