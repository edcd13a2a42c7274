/** A process with a system. */
import 'reflect-metadata';
import { serveHost } from './serve-host.js';
import { SystemHost } from './system-host.js';

serveHost(new SystemHost());
