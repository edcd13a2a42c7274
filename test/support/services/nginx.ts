import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, installPackage, waitForInstallations } from './find-program.js';
import { freePort, startServer } from './server-process.js';
import { type RunningService } from './service.js';

const DEBIAN = ['/usr/sbin'];
const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/**
 * Starts an nginx in front of a server, with the default settings of nginx and of its Debian package.
 * @param settings directives of the location
 */
export async function startNginx(folder: string, upstream: string, settings = ''): Promise<RunningService> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const configuration = join(folder, 'nginx.conf');
  writeFileSync(
    configuration,
    `daemon off;
pid ${join(folder, 'nginx.pid')};
error_log stderr;
events {}
http {
  access_log off;
  gzip on;
  ${TEMPORARY.map((name) => `${name}_temp_path ${join(folder, name)};`).join('\n  ')}
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass ${upstream};
      ${settings}
    }
  }
}
`,
  );
  const stop = await startServer({
    program: findNginx(),
    args: ['-e', 'stderr', '-c', configuration],
    folder,
    stopSignal: 'TERM',
    answers: () => fetch(url),
  });
  return { url, stop };
}

function findNginx(): string {
  waitForInstallations();
  const found = findProgram('nginx', DEBIAN);
  if (found) return found;
  installPackage('nginx');
  const installed = findProgram('nginx', DEBIAN);
  if (!installed) throw new Error('nginx was installed, but was not found.');
  return installed;
}
