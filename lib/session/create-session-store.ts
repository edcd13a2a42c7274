import { isPlainObject } from '../common/json.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { SessionStore, type SessionStoreSettings } from './session-store.service.js';
import { type SessionStoreAdapter } from './session.store.js';

export interface SessionStoreConfig extends SessionStoreSettings {
  readonly adapter: SessionStoreAdapter;
}

const METHODS = ['insert', 'fetchById', 'fetchMany', 'update', 'delete'] as const;

/**
 * A session store without Nest (SES-17).
 * @throws SessionsConfigurationError when the adapter lacks one of its five methods
 */
export function createSessionStore(config: SessionStoreConfig): SessionStore {
  const adapter: unknown = isPlainObject(config) ? config.adapter : undefined;
  assertSessionStoreAdapter(adapter, 'createSessionStore: adapter');
  const { adapter: _, ...settings } = config;
  return new SessionStore(adapter, settings);
}

export function assertSessionStoreAdapter(value: unknown, path: string): asserts value is SessionStoreAdapter {
  const missing = METHODS.filter(
    (name) => typeof (value as Record<string, unknown> | undefined)?.[name] !== 'function',
  );
  if (missing.length > 0) {
    throw new SessionsConfigurationError(
      `${path} must have the methods ${METHODS.join(', ')}; it lacks ${missing.join(', ')}.`,
    );
  }
}
