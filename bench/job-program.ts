/** A process with a system of PRF-02. */
import 'reflect-metadata';
import { JobHost } from './job-host.js';
import { serveHost } from './serve-host.js';

serveHost(new JobHost());
