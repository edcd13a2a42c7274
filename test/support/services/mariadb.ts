import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import mysql from 'mysql2/promise';
import { findProgram, installPackage } from './find-program.js';
import { asNobody, freePort, startServer } from './server-process.js';
import { type Service } from './service.js';

const run = promisify(execFile);

const DEBIAN = ['/usr/sbin', '/usr/bin'];

/** Data need not survive a power cut, so nothing waits for the disk. Tables share a file, because tests create thousands. */
const FAST = [
  '--innodb-flush-log-at-trx-commit=0',
  '--loose-innodb-flush-method=nosync',
  '--loose-debug-no-sync',
  '--skip-innodb-file-per-table',
  '--skip-log-bin',
];

export const mariadb: Service = {
  name: 'mariadb',
  variable: 'TEST_MYSQL_URL',

  async start(folder) {
    const programs = findPrograms();
    const data = join(folder, 'data');
    // Two installations at once remove each other's tables from a shared folder.
    const folders = [`--datadir=${data}`, `--tmpdir=${folder}`];
    await run(
      programs.install,
      ['--no-defaults', ...folders, '--auth-root-authentication-method=normal', '--skip-test-db', ...FAST],
      { cwd: folder, ...asNobody() },
    );

    const port = await freePort();
    const server = `mysql://root@127.0.0.1:${port}`;
    const stop = await startServer({
      program: programs.server,
      args: [
        '--no-defaults',
        ...folders,
        `--socket=${join(folder, 'socket')}`,
        `--port=${port}`,
        '--bind-address=127.0.0.1',
        '--max-connections=200',
        '--innodb-buffer-pool-size=256M',
        // Allows statements with the largest values that options can allow.
        '--max-allowed-packet=64M',
        ...FAST,
      ],
      folder,
      stopSignal: 'TERM',
      answers: () => createDatabase(server),
    });
    return { url: `${server}/sessions`, stop };
  },
};

function findPrograms(): { server: string; install: string } {
  const look = (): [string | undefined, string | undefined] => [
    findProgram('mariadbd', DEBIAN),
    findProgram('mariadb-install-db', DEBIAN),
  ];
  let [server, install] = look();
  if (!server || !install) {
    installPackage('mariadb-server');
    [server, install] = look();
  }
  if (!server || !install) throw new Error('mariadb-server was installed, but mariadbd was not found.');
  return { server, install };
}

async function createDatabase(url: string): Promise<void> {
  const connection = await mysql.createConnection(url);
  await connection.query('CREATE DATABASE IF NOT EXISTS sessions CHARACTER SET utf8mb4');
  await connection.end();
}
