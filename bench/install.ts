import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BENCH } from './chart-library.js';

/** Installs what only the benchmark needs, unless it is there. */
export function installOnce(): void {
  if (existsSync(join(BENCH, 'node_modules'))) return;
  console.log('Installing what the benchmark needs, in bench/.');
  execFileSync('npm', ['ci', '--prefix', BENCH, '--no-audit', '--no-fund'], { stdio: ['ignore', 'ignore', 'inherit'] });
}
