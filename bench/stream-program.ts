/** A process that emits or reads streams. */
import 'reflect-metadata';
import { serveHost } from './serve-host.js';
import { StreamHost } from './stream-host.js';

serveHost(new StreamHost());
