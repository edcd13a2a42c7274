import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { CompiledBlocks } from './compiled-blocks.js';
import { type Block, lineAt, PAGES, PROJECT, read, readPage } from './pages.js';

const pages = PAGES.map(readPage);
const blocks = pages.flatMap((page) => page.blocks);
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };

/** The built-in `npm` commands that pages use. */
const NPM_COMMANDS = ['audit', 'ci', 'exec', 'init', 'install', 'pack', 'pkg', 'publish', 'rebuild', 'sbom'];
const COMPILED = ['ts', 'tsx', 'js'];
const DIAGRAMS = /^(flowchart (LR|TB)|sequenceDiagram|stateDiagram-v2)\n/;

describe('the code blocks of the pages', () => {
  let compiled: CompiledBlocks;

  beforeAll(() => {
    compiled = new CompiledBlocks(blocksOf(...COMPILED));
  }, 120_000);

  it.each(pagesWith(...COMPILED))('DOC compiles the code blocks of %s', (page) => {
    expect(compiled.problemsOf(page)).toEqual([]);
  });

  it.each(pagesWith('sh'))('DOC accepts the commands of %s as shell syntax', (page) => {
    for (const { text } of blocksOf('sh').filter((block) => block.page === page)) {
      expect(spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
    }
  });

  it.each(PAGES)('DOC finds the npm scripts and files that %s names', (path) => {
    const { prose } = pages.find((page) => page.path === path)!;
    const spans = [...prose.matchAll(/`([^`]+)`/g)].map(({ 1: text = '', index }) => ({
      line: lineAt(prose, index),
      text,
    }));
    const commands = blocksOf('sh').filter(({ page }) => page === path);

    expect(
      [...spans, ...commands].flatMap(({ line, text }) => missing(text).map((name) => `${path}:${line} ${name}`)),
    ).toEqual([]);
  });

  it.each(pagesWith('typescript'))('DOC parses the TypeScript of other packages in %s', (page) => {
    for (const { text } of blocksOf('typescript').filter((block) => block.page === page)) {
      const { diagnostics } = ts.transpileModule(text, { reportDiagnostics: true });
      expect(diagnostics).toEqual([]);
      expect(text).not.toContain('nestjs-agent-sessions');
    }
  });

  it('DOC parses JSON and diagrams', () => {
    for (const { text } of blocksOf('json')) expect(() => JSON.parse(text) as unknown).not.toThrow();
    for (const { text } of blocksOf('mermaid')) expect(text).toMatch(DIAGRAMS);
  });

  it('DOC checks every language of the blocks', () => {
    // first-example.spec.ts opens the HTML page in a browser. deployment.spec.ts checks the files of containers.
    const checked = [...COMPILED, 'typescript', 'sh', 'json', 'mermaid', 'html', 'yaml', 'dockerfile', ''];

    expect(blocks.filter(({ language }) => !checked.includes(language))).toEqual([]);
    // A block without a language is output. Code in it would not be compiled.
    const isCode = ({ text }: Block): boolean => /^(?:import|export|const|function|class) /m.test(text);
    expect(blocksOf('').filter(isCode)).toEqual([]);
  });
});

/** Returns scripts and files that a text names and that do not exist in this repository. */
function missing(text: string): string[] {
  const run = [...text.matchAll(/\bnpm (?:run(?: -s| --silent)? )?(\w[\w:-]*)/g)].map(([, name = '']) => name);
  const files = text
    .split(/[\s'"=]+/)
    .filter((word) => /^(?:\.\/)?(?:\.ci|bench|docs|lib|sample|test)\/[\w./-]+$/.test(word));
  return [
    ...run
      .filter((name) => !(name in scripts) && !NPM_COMMANDS.includes(name))
      .map((name) => `There is no npm run ${name}.`),
    ...files.filter((file) => !existsSync(join(PROJECT, file))).map((file) => `There is no ${file}.`),
  ];
}

function blocksOf(...languages: string[]): Block[] {
  return blocks.filter(({ language }) => languages.includes(language));
}

function pagesWith(...languages: string[]): string[] {
  return [...new Set(blocksOf(...languages).map(({ page }) => page))];
}
