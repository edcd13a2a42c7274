/**
 * Compares the public surface with the reports in `.ci/api`, one per entry point, and limits the names of the root.
 * `--write` updates the reports. Needs a built `dist`.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CompilerState, Extractor, ExtractorConfig } from '@microsoft/api-extractor';

/** The root exports at most this many names. Types and the members of namespaces count. */
const MAX_ROOT_NAMES = 220;

const root = resolve(import.meta.dirname, '..');
const packageJson = join(root, 'package.json');
const reports = join(root, '.ci/api');
const write = process.argv.includes('--write');
const { exports } = JSON.parse(readFileSync(packageJson, 'utf8'));

const nameOf = (entry) => (entry === '.' ? 'root' : entry.slice(2));
const entries = Object.entries(exports).filter(([, target]) => target.types !== undefined);
const working = join(root, 'build/api-report');
mkdirSync(working, { recursive: true });

const configOf = (entry, types) =>
  ExtractorConfig.prepare({
    packageJsonFullPath: packageJson,
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: join(root, types),
      compiler: { tsconfigFilePath: join(root, 'tsconfig.build.json') },
      apiReport: { enabled: true, reportFileName: nameOf(entry), reportFolder: reports, reportTempFolder: working },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: { default: { logLevel: 'error' } },
        extractorMessageReporting: { default: { logLevel: 'none' } },
        tsdocMessageReporting: { default: { logLevel: 'none' } },
      },
    },
  });

const configs = entries.map(([entry, { types }]) => configOf(entry, types));
// One program for all entries, because TypeScript takes seconds to parse and check it.
const compilerState = CompilerState.create(configs[0], {
  additionalEntryPoints: configs.map(({ mainEntryPointFilePath }) => mainEntryPointFilePath),
});

let changed = 0;
for (const [index, [entry]] of entries.entries()) {
  const { apiReportChanged, succeeded } = Extractor.invoke(configs[index], {
    compilerState,
    localBuild: write,
    messageCallback: (message) => {
      if (message.category === 'console') message.logLevel = 'none';
    },
  });
  if (!apiReportChanged && succeeded) continue;
  changed += 1;
  const file = `${nameOf(entry)}.api.md`;
  if (!write) spawnSync('git', ['diff', '--no-index', join(reports, file), join(working, file)], { stdio: 'inherit' });
}

const expected = entries.map(([entry]) => `${nameOf(entry)}.api.md`);
const surplus = readdirSync(reports).filter((file) => !expected.includes(file));
if (surplus.length > 0) console.error(`No entry point has these reports: ${surplus.join(', ')}. Delete them.`);
if (changed > 0 && !write) {
  console.error(
    'The public surface differs from .ci/api. If that is intended: npm run lint:api -- --write, and commit.',
  );
}
const names = exportedNames(readFileSync(join(write ? reports : working, 'root.api.md'), 'utf8'));
if (names.size > MAX_ROOT_NAMES) {
  console.error(
    `The root exports ${names.size} names. Allowed: ${MAX_ROOT_NAMES}. Export rarely named types from lib/types.ts or from the ` +
      'entry point of their feature.',
  );
}
process.exitCode = surplus.length > 0 || (changed > 0 && !write) || names.size > MAX_ROOT_NAMES ? 1 : 0;

/** Returns the names that a report exports. A namespace counts with each of its members. */
function exportedNames(report) {
  const declared = report.matchAll(
    /^export (?:(?:abstract|declare) )*(?:class|const|enum|function|interface|let|type) (\w+)/gm,
  );
  const listed = report.matchAll(/^(?:declare namespace (\w+) \{\s*)?export \{([^}]*)\}/gm);
  const members = [...listed].flatMap(([, namespace, list]) =>
    list
      .split(',')
      .map((member) => member.trim())
      .filter((member) => member !== '')
      .map((member) => (namespace === undefined ? member : `${namespace}.${member}`)),
  );
  return new Set([...[...declared].map(([, name]) => name), ...members]);
}
