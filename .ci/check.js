/**
 * `npm run check`: what every commit must pass, without the tests. A part whose inputs have not changed since it last passed is skipped.
 * `--all` runs every part on every file.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { projectFiles } from './project-files.js';

const STATE = 'build/check';
const CONFIGURATION =
  /^(package(-lock)?\.json|(.*\/)?tsconfig.*\.json|eslint\..*|\.oxlintrc\.json|typedoc\.json|\.prettier.*|\.ci\/check\.js)$/;
const CODE = /\.(tsx?|mjs|js)$/;
const ALL = process.argv.includes('--all');

/** Parts start in this order. `inputs` are the names of files that decide the result, besides the configuration. */
const PARTS = [
  { name: 'types and the rules that need them', inputs: /\.(tsx?|json)$/, command: 'npm run --silent typecheck' },
  {
    name: 'lint',
    inputs: CODE,
    // Each rule looks at one file, so that files which have not changed need no second look.
    command: `eslint . --max-warnings 0 --cache --cache-strategy content --cache-location ${STATE}/eslint`,
  },
  {
    name: 'API reference',
    inputs: /^lib\/.*\.ts$|^test\/docs\/.*\.mjs$|^\.ci\/api-sections\.js$/,
    command: 'typedoc --logLevel Warn',
  },
  { name: 'API reports', inputs: /^lib\/.*\.ts$|^\.ci\/api|^declarations\.js$/, command: 'npm run --silent lint:api' },
  { name: 'Lua', inputs: /\.lua$|^text-modules\.js$/, command: 'npm run --silent lint:lua', needs: 'luacheck' },
  {
    name: 'SQL',
    inputs: /^lib\/store\/postgres\/migrations\//,
    command: 'npm run --silent lint:sql',
    needs: '/usr/lib/postgresql/15/lib/plpgsql_check.so',
  },
  {
    name: 'formatting',
    inputs: /./,
    command: `prettier --check . --log-level warn --cache --cache-strategy content --cache-location ${STATE}/prettier`,
  },
];

const files = projectFiles();

function inputsOf(part) {
  return Object.fromEntries([...files].filter(([name]) => part.inputs.test(name) || CONFIGURATION.test(name)));
}

/** The file with the inputs of a part when it last passed. */
function stateOf(part) {
  return join(STATE, `${part.name.replaceAll(' ', '-')}.json`);
}

function isUnchanged(part) {
  return !ALL && existsSync(stateOf(part)) && readFileSync(stateOf(part), 'utf8') === JSON.stringify(inputsOf(part));
}

function isInstalled(tool) {
  return tool.includes('/')
    ? existsSync(tool)
    : process.env.PATH.split(delimiter).some((folder) => existsSync(join(folder, tool)));
}

const results = new Map();

async function check(part) {
  if (isUnchanged(part)) return report(part, true, 'unchanged');
  if (part.needs && !isInstalled(part.needs)) return report(part, true, `SKIPPED: ${part.needs} is not installed`);
  const inputs = inputsOf(part);
  const start = performance.now();
  const { code, output } = await run(part.command);
  if (code === 0) writeFileSync(stateOf(part), JSON.stringify(inputs));
  report(part, code === 0, `${((performance.now() - start) / 1000).toFixed(0)} s`, code === 0 ? '' : output);
}

function run(command) {
  const env = { ...process.env, PATH: `${resolve('node_modules/.bin')}${delimiter}${process.env.PATH}` };
  const child = spawn(command, { shell: true, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
  return new Promise((done) => child.on('close', (code) => done({ code, output })));
}

function report(part, passed, remark, output = '') {
  results.set(part.name, passed);
  console.log(`${passed ? 'ok    ' : 'FAILED'} ${part.name} (${remark})`);
  if (output) console.log(output.trimEnd());
}

if (ALL) rmSync(STATE, { recursive: true, force: true });
mkdirSync(STATE, { recursive: true });
const waiting = [...PARTS];
async function worker() {
  while (waiting.length > 0) await check(waiting.shift());
}
await Promise.all(Array.from({ length: availableParallelism() }, worker));
process.exitCode = PARTS.every(({ name }) => results.get(name)) ? 0 : 1;
