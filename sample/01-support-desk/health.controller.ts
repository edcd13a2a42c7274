import { Controller, Get, Inject } from '@nestjs/common';
import { SESSIONS_ADAPTER, type SessionsAdapter } from 'nestjs-agent-sessions';

@Controller('health')
export class HealthController {
  constructor(@Inject(SESSIONS_ADAPTER) private readonly store: SessionsAdapter) {}

  /** 503 with the code STORE_UNAVAILABLE when the store does not answer. */
  @Get()
  async health(): Promise<{ status: string }> {
    await this.store.ping();
    return { status: 'ok' };
  }
}
