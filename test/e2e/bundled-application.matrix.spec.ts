import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../support/stores.js';

const APPLICATION = `
  import 'reflect-metadata';
  import { Module } from '@nestjs/common';
  import { NestFactory } from '@nestjs/core';
  import { Intent, memoryAdapter, Orchestrator, reply, SessionsModule, SessionStore, TurnService } from 'nestjs-agent-sessions';

  // A condition on the message loads re2js, which bundlers cannot see.
  const steps = [
    { name: 'greet', isDefault: true },
    { name: 'refund', conditions: [{ type: 'message_matches' as const, value: 'refund' }] },
  ];

  @Orchestrator({ name: 'desk', steps })
  class Desk {
    @Intent()
    answer() {
      return reply('Here.');
    }
  }

  @Module({ imports: [SessionsModule.forRoot({ adapter: memoryAdapter() }), SessionsModule.forFeature([Desk])] })
  class AppModule {}

  async function main() {
    const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
    const { id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' });
    console.log((await app.get(TurnService).execute('desk', 'Hello?', { sessionId })).reply);
    await app.close();
  }
  void main();
`;

/** docs/install.md names these packages: those that this package loads at run time, and optional packages of Nest. */
const EXTERNAL = [
  're2js',
  '@opentelemetry/api',
  '@nestjs/swagger',
  '@nestjs/microservices',
  '@nestjs/websockets',
  '@nestjs/platform-express',
  'class-transformer',
  'gpt-tokenizer',
];

const REQUIRE =
  "import { createRequire as nodeRequire } from 'node:module'; const require = nodeRequire(import.meta.url);";

describe('an application that is bundled with the packed package', () => {
  const folder = join(temporaryFolder(), 'application');

  beforeAll(() => {
    mkdirSync(join(folder, 'src'), { recursive: true });
    const options = ['--json', '--foreground-scripts=false', '--pack-destination', folder];
    const [{ filename }] = JSON.parse(npm(process.cwd(), 'pack', ...options)) as { filename: string }[];
    const dependencies = {
      '@nestjs/common': '^12',
      '@nestjs/core': '^12',
      '@nestjs/schedule': '^12',
      'nestjs-agent-sessions': `file:${filename}`,
      'reflect-metadata': '^0.2',
      rxjs: '^7',
    };
    const devDependencies = {
      '@nestjs/cli': '^12',
      esbuild: '^0.28.2',
      'fork-ts-checker-webpack-plugin': '^9.2.0',
      'ts-loader': '^9.6.2',
      'tsconfig-paths-webpack-plugin': '^4.2.0',
      typescript: '~6.0.3',
      webpack: '^5.113.0',
      'webpack-node-externals': '^3.0.0',
    };
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2022',
      outDir: 'dist',
      rootDir: 'src',
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
      skipLibCheck: true,
    };
    // Nest's compiler for webpack refuses projects of type `module`.
    write('package.json', { private: true, type: 'commonjs', dependencies, devDependencies });
    write('tsconfig.json', { compilerOptions, include: ['src'] });
    write('nest-cli.json', { sourceRoot: 'src' });
    writeFileSync(join(folder, 'src/main.ts'), APPLICATION);
    npm(folder, 'install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline');
  }, 240_000);

  it('FIX-74 runs as a CommonJS bundle of esbuild', () => {
    esbuild('--format=cjs', '--outfile=main.cjs');
    expect(node('main.cjs')).toBe('Here.\n');
  });

  it('FIX-74 runs as an ESM bundle of esbuild', () => {
    esbuild('--format=esm', '--outfile=main.mjs', `--banner:js=${REQUIRE}`);
    expect(node('main.mjs')).toBe('Here.\n');
  });

  it('FIX-74 runs after nest build --webpack', () => {
    run(join(folder, 'node_modules/.bin/nest'), 'build', '--webpack');
    expect(node('dist/main.js')).toBe('Here.\n');
  }, 120_000);

  function esbuild(...options: string[]): void {
    const external = EXTERNAL.map((name) => `--external:${name}`);
    const bundle = ['src/main.ts', '--bundle', '--platform=node', '--target=node20', '--log-level=error'];
    run(join(folder, 'node_modules/.bin/esbuild'), ...bundle, ...external, ...options);
  }

  function node(file: string): string {
    return run(process.execPath, file);
  }

  function run(command: string, ...args: string[]): string {
    return execFileSync(command, args, { cwd: folder, encoding: 'utf8', timeout: 100_000 });
  }

  function write(name: string, value: object): void {
    writeFileSync(join(folder, name), JSON.stringify(value));
  }
});

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', timeout: 230_000, stdio: ['ignore', 'pipe', 'pipe'] });
}
