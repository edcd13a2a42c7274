/** A process that asks for turns, or runs them. */
import 'reflect-metadata';
import { serveHost } from './serve-host.js';
import { WorkerHost } from './worker-host.js';

serveHost(new WorkerHost());
