import { type StoreServer } from './store-server.js';

/** No server, and nothing to fill: what is measured there runs in processes of its own. */
export async function openProcessMemory(): Promise<StoreServer> {
  return { version: 'the memory of the process', address: '', close: async () => {} };
}
