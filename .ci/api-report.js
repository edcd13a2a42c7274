/**
 * Compares the public surface with the reports in `.ci/api`, one per entry point.
 * `--write` updates the reports. Needs a built `dist`.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CompilerState, Extractor, ExtractorConfig } from '@microsoft/api-extractor';

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
process.exitCode = surplus.length > 0 || (changed > 0 && !write) ? 1 : 0;
