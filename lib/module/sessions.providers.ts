import { type Provider } from '@nestjs/common';
import { CONVERSATION_PROVIDERS } from './conversation.providers.js';
import { FOUNDATION_PROVIDERS, TRANSPORT_PROVIDERS } from './foundation.providers.js';
import { ORCHESTRATION_PROVIDERS, ORCHESTRATOR_PROVIDERS } from './orchestrator.providers.js';
import { SESSION_PROVIDERS, STATE_PROVIDERS } from './session.providers.js';
import { SessionsLifecycle } from './sessions.lifecycle.js';
import { TURN_PROVIDERS } from './turn.providers.js';

/** All providers of the module. */
export const SESSIONS_PROVIDERS: Provider[] = [
  ...FOUNDATION_PROVIDERS,
  ...SESSION_PROVIDERS,
  ...ORCHESTRATION_PROVIDERS,
  ...STATE_PROVIDERS,
  ...CONVERSATION_PROVIDERS,
  ...ORCHESTRATOR_PROVIDERS,
  ...TURN_PROVIDERS,
  ...TRANSPORT_PROVIDERS,
  SessionsLifecycle,
];
