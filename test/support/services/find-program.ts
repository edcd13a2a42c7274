import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/** Finds a program on PATH or in more folders. A `*` matches any one folder, the latest version first. */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  const onPath = (process.env.PATH ?? '').split(delimiter);
  return [...onPath, ...folders.flatMap(expand)].map((folder) => join(folder, name)).find(isExecutable);
}

/** Finds a file in one of the folders, which may contain a `*` as above. */
export function findFile(name: string, folders: readonly string[]): string | undefined {
  return folders
    .flatMap(expand)
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));
}

/**
 * Installs a Debian package if this process is root on Debian. Test files that install at the same time take turns.
 * @throws an error with the command to run otherwise
 */
export function installPackage(name: string): void {
  const aptGet = findProgram('apt-get');
  if (!aptGet || process.getuid?.() !== 0) {
    throw new Error(
      `${name} is needed by the tests and is not installed. Run: sudo apt-get install -y ${name}\n` +
        'or give the tests a server of your own, see CONTRIBUTING.md.',
    );
  }
  underInstallationLock(`${aptGet} update -qq && ${aptGet} install -y -qq --no-install-recommends ${name}`);
}

/** Waits while another process installs a package: until it ends, the files of the package may be incomplete. */
export function waitForInstallations(): void {
  if (findProgram('flock')) underInstallationLock('true');
}

function underInstallationLock(command: string): void {
  execFileSync('flock', [join(tmpdir(), 'nestjs-agent-sessions-installs.lock'), 'sh', '-c', command], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
}

function expand(folder: string): string[] {
  const [before, after] = folder.split('*');
  if (after === undefined) return [folder];
  try {
    return readdirSync(before)
      .sort((a, b) => Number(b) - Number(a))
      .map((version) => join(before, version, after));
  } catch {
    return [];
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
