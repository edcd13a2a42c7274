import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { linksOf, readPage } from '../docs/pages.js';
import { temporaryFolder } from '../support/stores.js';

const MODULES = [
  ['nodenext', ts.ModuleKind.NodeNext, ts.ModuleResolutionKind.NodeNext],
  ['bundler', ts.ModuleKind.ESNext, ts.ModuleResolutionKind.Bundler],
] as const;

/** The optional peer dependencies whose types the declarations of an entry point need. */
const OPTIONAL_PACKAGES: Record<string, readonly string[]> = {
  '.': [],
  './adapter': [],
  './ai-sdk': ['ai'],
  './bullmq': ['@nestjs/bullmq', 'bullmq'],
  './client': [],
  './http': [],
  './redis': ['ioredis'],
  './terminus': ['@nestjs/terminus'],
  './testing': ['@nestjs/testing'],
  './typeorm': ['typeorm'],
};

/** What a user gets from the registry, in an application that has nothing else of this checkout. */
describe('the packed package', () => {
  // Without symbolic links, as in the file names of the compiler.
  const folder = realpathSync(temporaryFolder());
  let tarball: string;
  let packedFiles: string[];

  beforeAll(() => {
    // The suite's pretest has built what is packed.
    const { filename, files } = pack(process.cwd(), folder);
    tarball = join(folder, filename);
    packedFiles = files.map(({ path }) => path);
  }, 60_000);

  it('DOC has the pages, the samples and the charts, and every link between them leads somewhere', () => {
    const pages = packedFiles.filter((path) => path.endsWith('.md'));
    expect(pages).toEqual(expect.arrayContaining(['README.md', 'docs/turns.md', 'sample/01-support-desk/README.md']));
    const isPacked = (path: string): boolean =>
      packedFiles.some((each) => each === path || each.startsWith(`${path.replace(/\/$/, '')}/`));
    // What proves a page is in the repository alone.
    const isProof = (path: string): boolean => /^(test|lib)\//.test(path);

    const dead = pages.flatMap((page) =>
      linksOf(readPage(page))
        .filter(({ path }) => path !== null && !isProof(path) && !isPacked(path))
        .map(({ line, path }) => `${page}:${line} ${path}`),
    );
    expect(dead).toEqual([]);
    expect(packedFiles.filter((path) => /^(test|lib|bench)\//.test(path) && !/\.(md|svg)$/.test(path))).toEqual([]);
  });

  it('DAY-12 has no tests, and no source maps without sources', () => {
    expect(packedFiles.filter((path) => /\.(spec|test)\.|(^|\/)tests?\/|\.map$/.test(path))).toEqual([]);
  });

  it('DAY-18 is built by npm pack in a new clone', () => {
    const clone = join(folder, 'clone');
    execFileSync('git', ['clone', '--quiet', '--local', '--no-hardlinks', process.cwd(), clone]);
    symlinkSync(join(process.cwd(), 'node_modules'), join(clone, 'node_modules'));

    const paths = pack(clone, clone).files.map(({ path }) => path);

    expect(paths).toEqual(expect.arrayContaining(['dist/index.js', 'dist/index.d.ts', 'dist/ai-sdk/index.js']));
  }, 300_000);

  it('NST-04 works in an empty Nest 12 application', () => {
    const application = install('nest-12', { type: 'module' }, { nest: '^12', schedule: '^12' });
    const imports = `
      import 'reflect-metadata';
      import { NestFactory } from '@nestjs/core';
      import { defineOrchestrator, SessionsModule, SessionStore, TurnService } from 'nestjs-agent-sessions';
      import { stateClient } from 'nestjs-agent-sessions/client';
      import { redisAdapter } from 'nestjs-agent-sessions/redis';
      import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';`;

    expect(run(application, 'main.mjs', imports)).toMatchObject({ turnIndex: 0, reply: 'You said hi.' });
  }, 180_000);

  it('NST-04 works in a CommonJS Nest 11 application, by require', () => {
    const application = install('nest-11', { type: 'commonjs' }, { nest: '^11', schedule: '^6' });
    const imports = `
      require('reflect-metadata');
      const { NestFactory } = require('@nestjs/core');
      const { defineOrchestrator, SessionsModule, SessionStore, TurnService } = require('nestjs-agent-sessions');
      const { stateClient } = require('nestjs-agent-sessions/client');
      const { redisAdapter } = require('nestjs-agent-sessions/redis');
      const { typeormAdapter } = require('nestjs-agent-sessions/typeorm');`;

    expect(run(application, 'main.cjs', imports)).toMatchObject({ turnIndex: 0, reply: 'You said hi.' });
  }, 180_000);

  it('DAY-21 has an entry /client that compiles in a front end without Nest', () => {
    const page = join(folder, 'page');
    unpack(page);
    const compilerOptions = {
      strict: true,
      skipLibCheck: false,
      module: 'nodenext',
      target: 'es2022',
      lib: ['es2022', 'dom', 'dom.iterable'],
      types: [],
      noEmit: true,
    };
    writeFileSync(join(page, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['page.ts'] }));
    writeFileSync(
      join(page, 'page.ts'),
      `import { type ConversationPage, readAnswer, type TurnView } from 'nestjs-agent-sessions/client';
      export async function follow({ turns }: ConversationPage, { id }: TurnView): Promise<string> {
        let shown = turns.flatMap(({ messages }) => messages.map(({ role }) => role)).join();
        for await (const { text } of readAnswer({ url: \`/turns/\${id}/events\` })) shown = text;
        return shown;
      }`,
    );

    const compiler = join(process.cwd(), 'node_modules/typescript/bin/tsc');
    const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', page], { encoding: 'utf8' });

    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
  }, 120_000);

  it.each(MODULES)(
    'FIX-78 compiles with every entry point under %s with exactOptionalPropertyTypes and without skipLibCheck',
    (name, module, moduleResolution) => {
      const application = join(folder, name);
      const installed = unpack(application);
      const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Manifest;
      const packages = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
      for (const each of [...packages, '@types/node']) linkPackage(application, each);
      const main = join(application, 'application.ts');
      copyFileSync('test/e2e/packed-application.ts', main);

      const { files, problems } = compile(application, main, { module, moduleResolution });

      expect(problems).toEqual([]);
      const entries = Object.values(manifest.exports).flatMap(({ types }) => types ?? []);
      expect(files).toEqual(expect.arrayContaining(entries.map((types) => join(installed, types))));
    },
    180_000,
  );

  it.each(Object.entries(OPTIONAL_PACKAGES))(
    'DAY-18 compiles with the entry point %s, with only the optional packages %j',
    (entry, optional) => {
      const application = join(folder, 'entries', entry);
      const manifest = JSON.parse(readFileSync(join(unpack(application), 'package.json'), 'utf8')) as Manifest;
      const { dependencies, peerDependencies, peerDependenciesMeta } = manifest;
      const required = Object.keys({ ...dependencies, ...peerDependencies }).filter(
        (each) => peerDependenciesMeta[each]?.optional !== true,
      );
      for (const each of [...required, ...optional, '@types/node']) linkPackage(application, each);
      const main = join(application, 'application.ts');
      writeFileSync(main, `export * from 'nestjs-agent-sessions${entry.slice(1)}';`);

      const [, module, moduleResolution] = MODULES[0];
      expect(compile(application, main, { module, moduleResolution }).problems).toEqual([]);
      const entries = Object.keys(manifest.exports).filter((each) => manifest.exports[each]?.types !== undefined);
      expect(Object.keys(OPTIONAL_PACKAGES).sort()).toEqual(entries.sort());
    },
    120_000,
  );

  /** Compiles a file with the strictest options. @returns the files of it and of this package, and their problems */
  function compile(
    application: string,
    main: string,
    options: ts.CompilerOptions,
  ): { files: string[]; problems: string[] } {
    const program = ts.createProgram([main], {
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      target: ts.ScriptTarget.ES2023,
      experimentalDecorators: true,
      types: ['node'],
      typeRoots: [join(application, 'node_modules/@types')],
      noEmit: true,
      ...options,
    });
    // Not the declarations of other packages: their errors are not those of this package.
    const files = program
      .getSourceFiles()
      .filter(({ fileName }) => fileName === main || fileName.includes('/node_modules/nestjs-agent-sessions/'));
    const problems = files.flatMap((file) => [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]);
    return {
      files: files.map(({ fileName }) => fileName),
      problems: [...program.getOptionsDiagnostics(), ...problems].map(messageOf),
    };
  }

  /** Creates an application with the unpacked package alone. npm would install the peer dependencies as well. */
  function unpack(application: string): string {
    const installed = join(application, 'node_modules/nestjs-agent-sessions');
    mkdirSync(installed, { recursive: true });
    execFileSync('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed]);
    writeFileSync(join(application, 'package.json'), '{ "private": true, "type": "module" }');
    return installed;
  }

  function install(name: string, manifest: object, versions: { nest: string; schedule: string }): string {
    const application = join(folder, name);
    mkdirSync(application);
    const dependencies = {
      '@nestjs/common': versions.nest,
      '@nestjs/core': versions.nest,
      '@nestjs/schedule': versions.schedule,
      'nestjs-agent-sessions': `file:${tarball}`,
      'reflect-metadata': '^0.2',
      rxjs: '^7',
    };
    writeFileSync(join(application, 'package.json'), JSON.stringify({ private: true, ...manifest, dependencies }));
    npm(application, 'install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline');
    expect(installedVersion(application, '@nestjs/core')).toMatch(new RegExp(`^${versions.nest.slice(1)}\\.`));
    return application;
  }

  function run(application: string, file: string, imports: string): unknown {
    const script = `${imports}
      const echo = defineOrchestrator({ name: 'echo', intents: { echo: (turn) => 'You said ' + turn.input.text + '.' } });
      class AppModule {}
      async function main() {
        // What they need is loaded when they are opened.
        redisAdapter({ url: 'redis://localhost:6379' });
        typeormAdapter({ dataSource: { type: 'postgres' } });
        stateClient({ baseUrl: 'http://localhost' });
        // Without @nestjs/swagger.
        const root = SessionsModule.forRoot({ controllers: { state: { guards: [{ canActivate: () => true }] } } });
        const module = { module: AppModule, imports: [root, SessionsModule.forFeature([echo])] };
        const app = await NestFactory.createApplicationContext(module, { logger: false });
        const { id } = await app.get(SessionStore).create({ userId: 'ann' });
        console.log(JSON.stringify(await app.get(TurnService).execute('echo', 'hi', { sessionId: id })));
        await app.close();
      }
      main();`;
    writeFileSync(join(application, file), script);
    return JSON.parse(execFileSync(process.execPath, [file], { cwd: application, encoding: 'utf8', timeout: 60_000 }));
  }
});

interface Manifest {
  readonly exports: Record<string, { readonly types?: string }>;
  readonly dependencies: Record<string, string>;
  readonly peerDependencies: Record<string, string>;
  readonly peerDependenciesMeta: Record<string, { readonly optional?: boolean }>;
}

/** Adds a package of this checkout to an application. */
function linkPackage(application: string, name: string): void {
  const link = join(application, 'node_modules', name);
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(join(process.cwd(), 'node_modules', name), link);
}

function messageOf({ file, messageText }: ts.Diagnostic): string {
  return `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
}

function installedVersion(application: string, name: string): string {
  const manifest = readFileSync(join(application, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

function pack(checkout: string, destination: string): Packed {
  // Scripts must not write into the JSON.
  const options = ['--json', '--foreground-scripts=false', '--pack-destination', destination];
  const [packed] = JSON.parse(npm(checkout, 'pack', ...options)) as Packed[];
  return packed;
}

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', timeout: 290_000, stdio: ['ignore', 'pipe', 'pipe'] });
}
