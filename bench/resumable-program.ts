/** A process that streams through resumable-stream, or reads such streams. */
import { ResumableHost } from './resumable-host.js';
import { serveHost } from './serve-host.js';

serveHost(new ResumableHost());
