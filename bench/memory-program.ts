/** The process whose memory is measured. */
import 'reflect-metadata';
import { MemoryHost } from './memory-host.js';
import { serveHost } from './serve-host.js';

serveHost(new MemoryHost());
