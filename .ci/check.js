/**
 * `npm run check`: what every commit must pass, without the tests. A part whose inputs have not changed since it last passed is skipped.
 * ESLint checks changed files and all files that import them, because its rules use types. `--all` runs every part on every file.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, dirname, join, normalize, resolve } from 'node:path';
import ts from 'typescript';
import { projectFiles } from './project-files.js';

const STATE = 'build/check';
const CONFIGURATION =
  /^(package(-lock)?\.json|tsconfig.*\.json|eslint\..*|typedoc\.json|\.prettier.*|\.ci\/check\.js)$/;
const CODE = /\.(tsx?|mjs|js)$/;
/** The number of changed files above which ESLint checks all files. */
const MANY_FILES = 200;

/** Parts start in this order. `inputs` are the names of files that decide the result, besides the configuration. */
const PARTS = [
  { name: 'lint', inputs: CODE, command: eslint },
  {
    name: 'types',
    inputs: /^(lib|sample|test|bench)\/.*\.(tsx?|json)$/,
    command: () => `tsc --noEmit --incremental --tsBuildInfoFile ${STATE}/types.tsbuildinfo`,
  },
  {
    name: 'types of the chat page',
    inputs: /^(lib|sample\/06-ai-chat)\/.*\.tsx?$/,
    command: () => 'tsc --noEmit -p sample/06-ai-chat/page',
  },
  { name: 'types of the site', inputs: /^docs\/\.vitepress\//, command: () => 'tsc --noEmit -p docs/.vitepress' },
  {
    name: 'API reference',
    inputs: /^lib\/.*\.ts$|^test\/docs\/.*\.mjs$/,
    command: () => 'typedoc --logLevel Warn',
  },
  { name: 'API reports', inputs: /^lib\/.*\.ts$|^\.ci\/api/, command: () => 'npm run --silent lint:api' },
  { name: 'Lua', inputs: /\.lua$|^text-modules\.js$/, command: () => 'npm run --silent lint:lua', needs: 'luacheck' },
  {
    name: 'SQL',
    // Waits for its turn, because it compiles to `dist` as well.
    after: 'API reports',
    inputs: /^lib\/store\/postgres\/migrations\//,
    command: () => 'npm run --silent lint:sql',
    needs: '/usr/lib/postgresql/15/lib/plpgsql_check.so',
  },
  {
    name: 'formatting',
    inputs: /./,
    command: () =>
      `prettier --check . --log-level warn --cache --cache-strategy content --cache-location ${STATE}/prettier`,
  },
];

/** The sources of the package's entry points, such as `nestjs-agent-sessions/adapter`. */
const ENTRIES = JSON.parse(readFileSync('tsconfig.json', 'utf8')).compilerOptions.paths;

const files = projectFiles();

function inputsOf(part) {
  return Object.fromEntries([...files].filter(([name]) => part.inputs.test(name) || CONFIGURATION.test(name)));
}

/** The file with the inputs of a part when it last passed. */
function stateOf(part) {
  return join(STATE, `${part.name.replaceAll(' ', '-')}.json`);
}

/** The names of inputs that differ from those of the last pass; null if every file must be checked. */
function changesOf(part) {
  if (process.argv.includes('--all') || !existsSync(stateOf(part))) return null;
  const before = JSON.parse(readFileSync(stateOf(part), 'utf8'));
  const now = inputsOf(part);
  const names = Object.keys({ ...before, ...now }).filter((name) => before[name] !== now[name]);
  return names.some((name) => CONFIGURATION.test(name)) ? null : names;
}

/** @returns the command for the changed files and their dependents, or for all files */
function eslint(changes) {
  const affected = changes && withDependents(changes).filter((name) => files.has(name) && CODE.test(name));
  if (!affected || affected.length > MANY_FILES) return 'eslint .';
  return affected.length > 0 ? `eslint --no-warn-ignored ${affected.join(' ')}` : 'true';
}

function withDependents(changes) {
  const importers = new Map();
  for (const name of files.keys()) {
    if (!CODE.test(name)) continue;
    for (const { fileName } of ts.preProcessFile(readFileSync(name, 'utf8'), true, true).importedFiles) {
      for (const imported of sourcesOf(fileName, name))
        importers.set(imported, [...(importers.get(imported) ?? []), name]);
    }
  }
  const found = new Set();
  const add = (name) => {
    if (found.has(name)) return;
    found.add(name);
    for (const importer of importers.get(name) ?? []) add(importer);
  };
  changes.forEach(add);
  return [...found];
}

/** The files that an import may mean. */
function sourcesOf(specifier, importer) {
  const entry = ENTRIES[specifier]?.[0];
  if (entry) return [normalize(entry)];
  if (!specifier.startsWith('.')) return [];
  const path = normalize(join(dirname(importer), specifier));
  return [path, path.replace(/\.js$/, '.ts'), path.replace(/\.js$/, '.tsx')];
}

function isInstalled(tool) {
  return tool.includes('/')
    ? existsSync(tool)
    : process.env.PATH.split(delimiter).some((folder) => existsSync(join(folder, tool)));
}

const results = new Map();

async function check(part) {
  const changes = changesOf(part);
  if (changes?.length === 0) return report(part, true, 'unchanged');
  if (part.needs && !isInstalled(part.needs)) return report(part, true, `SKIPPED: ${part.needs} is not installed`);
  const inputs = inputsOf(part);
  const start = performance.now();
  const { code, output } = await run(part.command(changes));
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

mkdirSync(STATE, { recursive: true });
const waiting = [...PARTS];
async function worker() {
  for (;;) {
    const next = waiting.findIndex(({ after }) => after === undefined || results.has(after));
    if (next < 0) return;
    await check(...waiting.splice(next, 1));
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, worker));
process.exitCode = PARTS.every(({ name }) => results.get(name)) ? 0 : 1;
