import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BENCH } from './chart-library.js';

/** Installs what only the benchmark needs, unless it is there. */
export function installOnce(): void {
  const { dependencies } = JSON.parse(readFileSync(join(BENCH, 'package.json'), 'utf8')) as { dependencies: object };
  if (Object.keys(dependencies).every((name) => existsSync(join(BENCH, 'node_modules', name)))) return;
  console.log('Installing what the benchmark needs, in bench/.');
  execFileSync('npm', ['ci', '--prefix', BENCH, '--omit=peer', '--no-audit', '--no-fund'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
