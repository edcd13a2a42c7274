import { type StoreServer } from './store-server.js';

/** The memory of the process: no server and nothing to fill, because these benchmarks run in separate processes. */
export async function openProcessMemory(): Promise<StoreServer> {
  return { version: 'the memory of the process', address: '', close: async () => {} };
}
