import { validateInput } from '../common/check-input.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { SessionStoreConfig } from './session-store.config.js';
import { SessionStore } from './session-store.service.js';
import { missingOfSessions, SESSION_METHODS, type SessionStoreAdapter } from '../ledger/session.store.js';

/**
 * Creates a session store without Nest (SES-17).
 * @throws SessionsConfigurationError for an unknown or invalid setting, or if the adapter lacks a method
 */
export function createSessionStore(config: SessionStoreConfig): SessionStore {
  const checked = validateInput(SessionStoreConfig, config, 'config');
  if ('problem' in checked) {
    const { path, rule } = checked.problem;
    throw new SessionsConfigurationError(`createSessionStore: ${path} ${rule}`);
  }
  const { adapter, ...settings } = checked.value;
  assertSessionStoreAdapter(adapter, 'createSessionStore: config.adapter');
  return new SessionStore(adapter, settings);
}

function assertSessionStoreAdapter(value: unknown, path: string): asserts value is SessionStoreAdapter {
  const missing = missingOfSessions(value);
  if (missing.length === 0) return;
  const basic = Object.keys(SESSION_METHODS);
  const methods = missing.some((name) => basic.includes(name))
    ? `the methods ${basic.join(', ')}.`
    : 'all methods of AtomicSessionStoreAdapter, because it has some of them.';
  throw new SessionsConfigurationError(`${path} must have ${methods} Missing: ${missing.join(', ')}.`);
}
