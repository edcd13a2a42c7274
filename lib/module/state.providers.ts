import { type Provider } from '@nestjs/common';
import { provide } from '../common/nest-providers.js';
import { ConversationCompaction } from '../conversation/conversation-compaction.service.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type SessionsSettings } from './sessions.settings.js';
import { BUILT_IN_STATE, OBSERVED_ADAPTER, SESSIONS_SETTINGS } from '../common/sessions.tokens.js';
import { builtInModules, builtInState } from '../state/built-in-modules.js';
import { ownedLog, ownedState } from '../state/owned-state.js';
import { type BuiltInState, SessionStateService } from '../state/session-state.service.js';
import { StateModules } from '../state/state-modules.js';

/** State modules, and the service that reads and changes all of them. */
export const STATE_PROVIDERS: Provider[] = [
  provide(
    BUILT_IN_STATE,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS],
    (stores: SessionsAdapter, { state }: SessionsSettings) =>
      builtInState({ conversations: ownedLog(stores), turns: stores.turns, state: ownedState(stores) }, state),
  ),
  provide(
    StateModules,
    [OBSERVED_ADAPTER, BUILT_IN_STATE, ConversationCompaction, SESSIONS_SETTINGS],
    (stores: SessionsAdapter, builtIn: BuiltInState, compaction: ConversationCompaction, { state }: SessionsSettings) =>
      new StateModules(builtInModules(stores, builtIn, compaction), state.hookTimeoutMs),
  ),
  provide(
    SessionStateService,
    [OBSERVED_ADAPTER, SESSIONS_SETTINGS, BUILT_IN_STATE, StateModules],
    (stores: SessionsAdapter, { state }: SessionsSettings, builtIn: BuiltInState, modules: StateModules) =>
      new SessionStateService({ stores, modules, builtIn, redact: state.redact }),
  ),
];
