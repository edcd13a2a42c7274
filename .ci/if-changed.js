/**
 * `node .ci/if-changed.js OUTPUT INPUT... -- COMMAND` runs a shell command unless OUTPUT exists and the command and all files below the
 * INPUTs are the same as when it last succeeded. Outside a git checkout it always runs the command.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hashOf, projectFiles } from './project-files.js';

const [output, ...rest] = process.argv.slice(2);
const inputs = rest.slice(0, rest.indexOf('--'));
const [command] = rest.slice(rest.indexOf('--') + 1);

const isInput = (name) => inputs.some((input) => name === input || name.startsWith(`${input}/`));
const state = () => hashOf(JSON.stringify([command, ...[...projectFiles()].filter(([name]) => isInput(name))]));

const folder = 'build/if-changed';
const file = `${folder}/${output.replaceAll('/', '-')}`;
const before = existsSync('.git') && state();
if (before && existsSync(output) && existsSync(file) && readFileSync(file, 'utf8') === before) process.exit();

const { status } = spawnSync(command, { shell: true, stdio: 'inherit' });
if (status === 0 && before) {
  mkdirSync(folder, { recursive: true });
  // The command may write one of its own inputs, such as a generated list.
  writeFileSync(file, state());
}
process.exitCode = status ?? 1;
