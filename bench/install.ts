import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { BENCH } from './chart-library.js';

/** Installs the dependencies of the benchmarks, unless they exist. `.npmrc` in this folder contains the settings. */
export function installOnce(): void {
  const { dependencies } = JSON.parse(readFileSync(join(BENCH, 'package.json'), 'utf8')) as { dependencies: object };
  const modules = join(BENCH, 'node_modules');
  if (Object.keys(dependencies).every((name) => existsSync(join(modules, name)))) return;
  console.log('Installing what the benchmark needs, in bench/.');
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: BENCH, stdio: ['ignore', 'ignore', 'inherit'] });
  // Remove the copy that is not compiled, so that all contestants use the package's SQLite.
  rmSync(join(modules, 'better-sqlite3'), { recursive: true, force: true });
}
