import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { sqliteAdapter } from '../support/stores.js';

/** Looks into the file of a running sample, beside its process. */
export async function withLedger<T>(file: string, look: (adapter: SessionsAdapter) => Promise<T>): Promise<T> {
  const adapter = sqliteAdapter(file);
  await adapter.init?.();
  try {
    return await look(adapter);
  } finally {
    await adapter.close?.();
  }
}
