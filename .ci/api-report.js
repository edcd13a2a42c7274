/**
 * Compares the public surface with the reports in `.ci/api`, one per entry point, and limits the names of the root. A
 * report begins with the comment and the table of contents of the entry file. `--write` updates the reports. Needs the
 * declarations in `build/declarations`: npm run lint:api.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CompilerState, Extractor, ExtractorConfig } from '@microsoft/api-extractor';
import { ENTRY_POINTS, readEntry } from './api-sections.js';

/** The root exports at most this many names. Types and the members of namespaces count. */
const MAX_ROOT_NAMES = 220;

const root = resolve(import.meta.dirname, '..');
const packageJson = join(root, 'package.json');
const reports = join(root, '.ci/api');
const write = process.argv.includes('--write');

const nameOf = (entry) => (entry === '.' ? 'root' : entry.slice(2));
const fileOf = (entry) => `${nameOf(entry)}.api.md`;
const working = join(root, 'build/api-report');
/** The reports of API Extractor, which this script completes and compares. */
const extracted = join(working, 'extracted');
mkdirSync(extracted, { recursive: true });

const configOf = ({ entry, types }) =>
  ExtractorConfig.prepare({
    packageJsonFullPath: packageJson,
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: join(root, types.replace('./dist/', 'build/declarations/')),
      compiler: { tsconfigFilePath: join(root, 'tsconfig.build.json') },
      apiReport: { enabled: true, reportFileName: nameOf(entry), reportFolder: extracted, reportTempFolder: extracted },
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

const configs = ENTRY_POINTS.map(configOf);
// One program for all entries, because TypeScript takes seconds to parse and check it.
const compilerState = CompilerState.create(configs[0], {
  additionalEntryPoints: configs.map(({ mainEntryPointFilePath }) => mainEntryPointFilePath),
});

let changed = 0;
let failed = false;
for (const [index, entryPoint] of ENTRY_POINTS.entries()) {
  const { succeeded } = Extractor.invoke(configs[index], {
    compilerState,
    messageCallback: (message) => {
      if (message.category === 'console') message.logLevel = 'none';
    },
  });
  failed ||= !succeeded;
  const file = fileOf(entryPoint.entry);
  const report = introductionOf(entryPoint) + linesOf(join(extracted, file));
  writeFileSync(join(working, file), withLineEnds(report));
  if (existsSync(join(reports, file)) && linesOf(join(reports, file)) === report) continue;
  changed += 1;
  if (write) writeFileSync(join(reports, file), withLineEnds(report));
  else spawnSync('git', ['diff', '--no-index', join(reports, file), join(working, file)], { stdio: 'inherit' });
}

const expected = ENTRY_POINTS.map(({ entry }) => fileOf(entry));
const surplus = readdirSync(reports).filter((file) => !expected.includes(file));
if (surplus.length > 0) console.error(`No entry point has these reports: ${surplus.join(', ')}. Delete them.`);
if (changed > 0 && !write) {
  console.error(
    'The public surface differs from .ci/api. If that is intended: npm run lint:api -- --write, and commit.',
  );
}
const names = exportedNames(linesOf(join(working, fileOf('.'))));
if (names.size > MAX_ROOT_NAMES) {
  console.error(
    `The root exports ${names.size} names. Allowed: ${MAX_ROOT_NAMES}. Export a type only if applications write its name. ` +
      'Inline small types, and export others from the entry point of their feature.',
  );
}
process.exitCode = failed || surplus.length > 0 || (changed > 0 && !write) || names.size > MAX_ROOT_NAMES ? 1 : 0;

/** Returns what a report begins with: what the entry point is for, and its sections with their names. */
function introductionOf({ name, source }) {
  const { comment, sections } = readEntry(source);
  const contents = sections.map(({ title, names }) => {
    const isError = (each) => each.endsWith('Error');
    const list = (given) => given.map((each) => `\`${each}\``).join(', ');
    const errors = names.filter(isError);
    const all = [
      list(names.filter((each) => !isError(each))),
      ...(errors.length === 0 ? [] : [`errors: ${list(errors)}`]),
    ].join('; ');
    return title === undefined ? `- ${all}` : `- **${title}**: ${all}`;
  });
  return [`# ${name}`, '', comment, '', '## Contents', '', ...contents, '', ''].join('\n');
}

/** Reads a report with the line ends of this script. */
function linesOf(file) {
  return readFileSync(file, 'utf8').replaceAll('\r\n', '\n');
}

/** Returns a report with the line ends of API Extractor. */
function withLineEnds(report) {
  return report.replaceAll('\n', '\r\n');
}

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
