export { InMemorySessionStoreAdapter, memoryAdapter, type MemoryAdapterOptions } from './memory-adapter.js';
