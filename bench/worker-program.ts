/** A process that submits or runs turns. */
import 'reflect-metadata';
import { serveHost } from './serve-host.js';
import { WorkerHost } from './worker-host.js';

serveHost(new WorkerHost());
