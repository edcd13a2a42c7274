import { execFile } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { temporaryFolder } from '../support/temporary-folder.js';
import { PROJECT, readPage } from './pages.js';

const LIMIT_MS = 180_000;
const MODULES = join(PROJECT, 'node_modules');
/** The files that Nest's CLI creates for a CommonJS project. */
const CLI_FILES = join(MODULES, '@nestjs/schematics/dist/lib/application/files/ts');
const { blocks } = readPage('docs/testing.md');
const [tsconfig = '', changes = ''] = blocks.filter(({ language }) => language === 'json').map(({ text }) => text);
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

describe('docs/testing.md', () => {
  it('DAY-10 tests a handler in five lines', () => {
    const [, body = ''] = /async \(\) => {\n(.*)}\);/s.exec(fileOf('shop-bot.spec.ts')) ?? [];

    expect(body.trim().split('\n').length).toBeLessThanOrEqual(5);
  });

  it(
    "DAY-20 says which Node the Jest of Nest's CLI needs without changes",
    async () => {
      const canRequire = major > 24 || (major === 24 && minor >= 9);

      expect(await runJest(newProject())).toContain(
        canRequire ? '✓ finds an order' : 'Must use import to load ES Module',
      );
    },
    LIMIT_MS,
  );

  it(
    "DAY-20 runs the first test with the Jest of Nest's CLI on every Node, with the changes of the page",
    async () => {
      const project = newProject(JSON.parse(changes) as object);
      writeFileSync(join(project, 'tsconfig.spec.json'), tsconfig);

      expect(await runJest(project)).toContain('✓ finds an order');
    },
    LIMIT_MS,
  );
});

/** Creates a project of Nest's CLI with the first files of the page, and with the package as npm installs it. */
function newProject(changedConfig: object = {}): string {
  const project = temporaryFolder();
  mkdirSync(join(project, 'node_modules'));
  for (const name of readdirSync(MODULES).filter((name) => !name.startsWith('.'))) {
    symlinkSync(join(MODULES, name), join(project, 'node_modules', name));
  }
  // A copy, because Jest transforms linked packages.
  const installed = join(project, 'node_modules/nestjs-agent-sessions');
  cpSync(join(PROJECT, 'dist'), join(installed, 'dist'), { recursive: true });
  copyFileSync(join(PROJECT, 'package.json'), join(installed, 'package.json'));

  mkdirSync(join(project, 'src'));
  for (const file of ['shop-bot.ts', 'shop-bot.spec.ts']) {
    writeFileSync(join(project, 'src', file), fileOf(file).replace("'./shop-bot.js'", "'./shop-bot'"));
  }
  writeFileSync(join(project, 'package.json'), '{ "private": true }');
  writeFileSync(join(project, 'tsconfig.json'), cliFile('tsconfig.json'));
  // Compiled, because not every Node loads a configuration in TypeScript.
  const module = ts.ModuleKind.CommonJS;
  const { outputText } = ts.transpileModule(cliFile('jest.config.ts'), {
    compilerOptions: { module, esModuleInterop: true },
  });
  writeFileSync(join(project, 'cli.config.js'), outputText);
  const config = `module.exports = { ...require('./cli.config.js').default, ...${JSON.stringify(changedConfig)} };`;
  writeFileSync(join(project, 'jest.config.js'), config);
  return project;
}

/** Runs the script `test` of Nest's CLI. @returns what it prints */
function runJest(project: string): Promise<string> {
  const [, script = ''] = /"test": "node (.*)"/.exec(cliFile('package.json')) ?? [];
  const env = { PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
  return new Promise((resolve) => {
    execFile(process.execPath, script.split(' '), { cwd: project, env }, (_error, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
}

function cliFile(name: string): string {
  return readFileSync(join(CLI_FILES, name), 'utf8')
    .replaceAll('<%= specFileSuffix %>', 'spec')
    .replaceAll('<%= strict %>', 'true');
}

function fileOf(name: string): string {
  return blocks.find(({ file }) => file === name)?.text ?? '';
}
