import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/stores.js';

/** Runs against the built package in separate processes, because only they show which packages are loaded or missing. */
const project = process.cwd();
const OPTIONAL = [
  'ai',
  'typeorm',
  'ioredis',
  'bullmq',
  'better-sqlite3',
  'class-transformer',
  'gpt-tokenizer',
  '@nestjs/graphql',
  '@nestjs/microservices',
  '@nestjs/terminus',
  '@nestjs/websockets',
  '@nestjs/swagger',
  '@nestjs/testing',
];

describe('the optional packages', () => {
  it('NST-04 are not loaded by the root entry or an application without them', async () => {
    const loaded = await packagesLoadedBy(`
      import 'reflect-metadata';
      import { Module } from '@nestjs/common';
      import { NestFactory } from '@nestjs/core';
      import { SessionsModule } from 'nestjs-agent-sessions';
      class AppModule {}
      Module({ imports: [SessionsModule.forRoot()] })(AppModule);
      const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
      await app.close();
    `);

    expect(loaded).toContain('@nestjs/core');
    expect(loaded.filter((name) => OPTIONAL.includes(name))).toEqual([]);
  });

  it('NST-04 are loaded when their adapter is used', async () => {
    const file = join(temporaryFolder(), 'sessions.db');

    const loaded = await packagesLoadedBy(`
      import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
      const adapter = typeormAdapter({ dataSource: { type: 'better-sqlite3', database: ${JSON.stringify(file)} } });
      await adapter.init();
      await adapter.close();
    `);

    expect(loaded).toEqual(expect.arrayContaining(['typeorm', 'better-sqlite3']));
    expect(loaded).not.toContain('ioredis');
  });

  it('NST-04 include ioredis but not TypeORM when the Redis store is opened', async () => {
    const loaded = await packagesLoadedBy(`
      import { redisAdapter } from 'nestjs-agent-sessions/redis';
      const adapter = redisAdapter({ url: 'redis://127.0.0.1:1' });
      process.exitCode = (await adapter.init().catch((error) => error.code)) === 'STORE_UNAVAILABLE' ? 0 : 1;
    `);

    expect(loaded).toContain('ioredis');
    expect(loaded).not.toContain('typeorm');
  });

  it('NST-04 are named with their install command if ioredis is missing', async () => {
    const output = await run(
      `
      import { SessionsConfigurationError } from 'nestjs-agent-sessions';
      import { redisAdapter } from 'nestjs-agent-sessions/redis';
      const error = await redisAdapter({ url: 'redis://127.0.0.1:1' }).init().then(() => null, (error) => error);
      console.log(error instanceof SessionsConfigurationError, error.message);
      `,
      { cwd: installationWithout('ioredis') },
    );

    expect(output).toBe('true The package ioredis is required but not installed. Run: npm install ioredis.\n');
  });

  it.each(['work', 'submit'])(
    'NST-04 TRN-21 stop the start of %s with a BullMQ queue if ioredis is missing',
    async (role) => {
      const output = await run(
        `
      import 'reflect-metadata';
      import { NestFactory } from '@nestjs/core';
      import { SessionsConfigurationError, SessionsModule } from 'nestjs-agent-sessions';
      import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
      class AppModule {}
      const queue = bullmqQueue({ connection: { url: 'redis://127.0.0.1:1' } });
      const root = { module: AppModule, imports: [SessionsModule.forRoot({ role: '${role}', turns: { queue } })] };
      const start = NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
      const error = await start.then(() => null, (error) => error);
      console.log(error instanceof SessionsConfigurationError, error?.message);
      process.exit();
      `,
        { cwd: installationWithout('ioredis') },
      );

      expect(output).toBe('true The package ioredis is required but not installed. Run: npm install ioredis.\n');
    },
  );

  it.each(['better-sqlite3', 'typeorm'])(
    'NST-04 are named with their install command if %s is missing',
    async (missing) => {
      const output = await run(
        `
      import { SessionsConfigurationError } from 'nestjs-agent-sessions';
      import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
      const adapter = typeormAdapter({ dataSource: { type: 'better-sqlite3', database: 'sessions.db' } });
      const error = await adapter.init().then(() => null, (error) => error);
      console.log(error instanceof SessionsConfigurationError, error.message);
      `,
        { cwd: installationWithout(missing) },
      );

      expect(output).toBe(`true The package ${missing} is required but not installed. Run: npm install ${missing}.\n`);
    },
  );

  it.each([
    ['postgres', 'pg', true],
    ['postgres', 'pg', false],
    ['mysql', 'mysql2', true],
    ['mariadb', 'mysql2', false],
  ])(
    'DAY-04 stop the start with a %s store if %s is missing; migrationsRun: %s',
    async (type, driver, migrationsRun) => {
      const output = await run(
        `
      import Module from 'node:module';
      const resolve = Module._resolveFilename;
      // TypeORM is linked, so it would find the driver in the folder of this project.
      Module._resolveFilename = (request, ...rest) => {
        const isDriver = request === '${driver}' || request.endsWith('/node_modules/${driver}');
        if (!isDriver) return resolve(request, ...rest);
        throw Object.assign(new Error("Cannot find module '" + request + "'"), { code: 'MODULE_NOT_FOUND' });
      };
      await import('reflect-metadata');
      const { NestFactory } = await import('@nestjs/core');
      const { SessionsConfigurationError, SessionsModule } = await import('nestjs-agent-sessions');
      const { typeormAdapter } = await import('nestjs-agent-sessions/typeorm');
      class AppModule {}
      const dataSource = { type: '${type}', url: '${type}://ann@127.0.0.1:1/app' };
      const adapter = typeormAdapter({ dataSource, migrationsRun: ${migrationsRun} });
      const root = { module: AppModule, imports: [SessionsModule.forRoot({ adapter })] };
      const start = NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
      const error = await start.then(() => null, (error) => error);
      console.log(error instanceof SessionsConfigurationError, error?.message);
      process.exit();
      `,
        { cwd: installationWithout(driver) },
      );

      expect(output).toBe(`true The package ${driver} is required but not installed. Run: npm install ${driver}.\n`);
    },
  );

  it('NST-04 BOT-40 stop the start of token windows and compaction without gpt-tokenizer or a counter', async () => {
    const output = await run(
      `
      import 'reflect-metadata';
      import { Module } from '@nestjs/common';
      import { NestFactory } from '@nestjs/core';
      import { defineOrchestrator, SessionsConfigurationError, SessionsModule } from 'nestjs-agent-sessions';
      const intents = { answer: () => 'ok' };
      const start = async (desk, options) => {
        class AppModule {}
        Module({ imports: [SessionsModule.forRoot(options), SessionsModule.forFeature([desk])] })(AppModule);
        const app = await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
        await app.close();
      };
      const counting = [
        { historyWindow: { maxTokens: 100 } },
        { historyWindow: { router: { maxTokens: 100 } } },
        { compaction: { afterTokens: 100, summarize: () => 'all' } },
      ];
      for (const more of counting) {
        const desk = defineOrchestrator({ name: 'desk', intents, ...more });
        const error = await start(desk, {}).then(() => null, (error) => error);
        console.log(error instanceof SessionsConfigurationError, error.message);
        await start(desk, { tokenCounter: (text) => text.length });
      }
      await start(defineOrchestrator({ name: 'desk', intents, compaction: { afterTurns: 9, summarize: () => 'all' } }), {});
      console.log('done');
      `,
      { cwd: installationWithout('gpt-tokenizer') },
    );

    const line =
      'true The orchestrator desk requires a token counter. Run npm install gpt-tokenizer, or pass a custom ' +
      'counter as the option tokenCounter of SessionsModule.forRoot().\n';
    expect(output).toBe(`${line.repeat(3)}done\n`);
  });

  it('STA-24 are required by compaction by tokens, which is otherwise rejected without a recorded failure', async () => {
    const output = await run(
      `
      import 'reflect-metadata';
      import { NestFactory } from '@nestjs/core';
      import { SessionsModule, SessionStateService } from 'nestjs-agent-sessions';
      class AppModule {}
      const root = { module: AppModule, imports: [SessionsModule.forRoot({})] };
      const app = await NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
      const state = app.get(SessionStateService);
      const { errors } = await state.compact({ sessionId: 's1', stores: ['conversation'], strategy: 'tokens' });
      console.log(errors.length, errors[0].code, errors[0].message.includes('npm install gpt-tokenizer'));
      await app.close();
      `,
      { cwd: installationWithout('gpt-tokenizer') },
    );

    expect(output).toBe('1 COMPACTION_NOT_CONFIGURED true\n');
  });

  it('FIX-73 include class-transformer for schema classes with nested classes', async () => {
    const output = await run(
      `
      import 'reflect-metadata';
      import { NestFactory } from '@nestjs/core';
      import { ValidateNested } from 'class-validator';
      import { defineOrchestrator, getOrchestratorToken, SessionsModule, SessionStore } from 'nestjs-agent-sessions';
      class Cart {}
      ValidateNested({ each: true })(Cart.prototype, 'items');
      const desk = defineOrchestrator({
        name: 'desk',
        initialState: () => ({ items: [] }),
        stateSchema: Cart,
        intents: { answer: () => 'Added.' },
      });
      class AppModule {}
      const turns = { retry: { attempts: 1 } };
      const root = { module: AppModule, imports: [SessionsModule.forRoot({ turns }), SessionsModule.forFeature([desk])] };
      const app = await NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
      const { id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' });
      const turn = app.get(getOrchestratorToken(desk), { strict: false }).execute('A lamp.', { sessionId });
      const { failure } = await turn.then(() => ({}), (error) => error);
      console.log(failure?.name, failure?.code, failure?.message);
      await app.close();
      `,
      { cwd: installationWithout('class-transformer') },
    );

    expect(output).toBe(
      'SessionsConfigurationError CONFIGURATION ' +
        'The package class-transformer is required but not installed. Run: npm install class-transformer.\n',
    );
  });

  it('NST-21 include the OpenTelemetry API in applications with telemetry, but not on import', async () => {
    const program = (options: string): string => `
      import 'reflect-metadata';
      import { NestFactory } from '@nestjs/core';
      import { SessionsModule } from 'nestjs-agent-sessions';
      class AppModule {}
      const root = { module: AppModule, imports: [SessionsModule.forRoot(${options})] };
      const app = await NestFactory.createApplicationContext(root, { logger: false });
      await app.close();
    `;
    expect(await packagesLoadedBy(program('{}'))).toContain('@opentelemetry/api');
    expect(await packagesLoadedBy(program('{ telemetry: false }'))).not.toContain('@opentelemetry/api');
    expect(await packagesLoadedBy(`import 'nestjs-agent-sessions';`)).not.toContain('@opentelemetry/api');
  });

  it('NST-21 do not include the OpenTelemetry API, without which turns run silently', async () => {
    const output = await run(
      `
      import 'reflect-metadata';
      import { NestFactory } from '@nestjs/core';
      import { defineOrchestrator, getOrchestratorToken, SessionsModule, SessionStore } from 'nestjs-agent-sessions';
      const desk = defineOrchestrator({
        name: 'desk',
        intents: { answer: (turn) => turn.step('count', () => 'seven') },
      });
      class AppModule {}
      const root = { module: AppModule, imports: [SessionsModule.forRoot({}), SessionsModule.forFeature([desk])] };
      const app = await NestFactory.createApplicationContext(root, { logger: ['warn', 'error'], abortOnError: false });
      const { id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' });
      const { reply } = await app.get(getOrchestratorToken(desk), { strict: false }).execute('how many?', { sessionId });
      console.log(reply);
      await app.close();
      `,
      { cwd: installationWithout('@opentelemetry/api') },
    );

    expect(output).toBe('seven\n');
  });

  it('NST-20 are named with their install command if the health module needs @nestjs/terminus', async () => {
    const output = await run(
      `
      import 'reflect-metadata';
      import { NestFactory } from '@nestjs/core';
      import { SessionsConfigurationError, SessionsModule } from 'nestjs-agent-sessions';
      import { SessionsHealthModule } from 'nestjs-agent-sessions/terminus';
      class AppModule {}
      const root = { module: AppModule, imports: [SessionsModule.forRoot({}), SessionsHealthModule] };
      const start = NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
      const error = await start.then(() => null, (error) => error);
      console.log(error instanceof SessionsConfigurationError, error.message);
      `,
      { cwd: installationWithout('@nestjs/terminus') },
    );

    expect(output).toBe(
      'true The package @nestjs/terminus is required but not installed. Run: npm install @nestjs/terminus.\n',
    );
  });

  it('NST-04 NST-26 include @nestjs/testing for the testing module, but not for the rest of /testing', async () => {
    const output = await run(
      `
      import { SessionsConfigurationError } from 'nestjs-agent-sessions';
      import { describeSessionsAdapter, scriptedOrchestrator, SessionsTestingModule, TestClock } from 'nestjs-agent-sessions/testing';
      await new TestClock().advance('2h');
      scriptedOrchestrator('desk', ['Hello.']);
      const error = await SessionsTestingModule.create().then(() => null, (error) => error);
      console.log(typeof describeSessionsAdapter, error instanceof SessionsConfigurationError, error.message);
      `,
      { cwd: installationWithout('@nestjs/testing') },
    );

    expect(output).toBe(
      'function true The package @nestjs/testing is required but not installed. Run: npm install @nestjs/testing.\n',
    );
  });

  it('NST-04 are not reported as missing if they throw while loading', async () => {
    const output = await run(
      `
      import { loadPeer } from '${project}/dist/common/load-peer.js';
      const fault = new TypeError('broken');
      const error = await loadPeer('typeorm', () => Promise.reject(fault)).catch((error) => error);
      console.log(error === fault);
      `,
    );

    expect(output).toBe('true\n');
  });
});

/** Returns the names of the packages that a program loads. */
async function packagesLoadedBy(program: string): Promise<string[]> {
  // The hook sees ES modules; the shared cache lists CommonJS ones. Written to a file, because a pipe may be full.
  const file = join(temporaryFolder(), 'modules');
  const hook = `
    import { appendFileSync } from 'node:fs';
    export async function resolve(specifier, context, next) {
      const resolved = await next(specifier, context);
      appendFileSync(${JSON.stringify(file)}, resolved.url + '\\n');
      return resolved;
    }`;
  const report = `
    import { createRequire, register } from 'node:module';
    register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}));
    process.on('exit', () => console.log(Object.keys(createRequire(process.cwd() + '/x.js').cache).join('\\n')));`;
  const required = await run(program, {
    nodeArguments: ['--import', `data:text/javascript,${encodeURIComponent(report)}`],
  });
  const imported = readFileSync(file, 'utf8');
  const names = [...`${required}\n${imported}`.matchAll(/\/node_modules\/((?:@[^/]+\/)?[^/]+)\//g)].map(
    ([, name]) => name ?? '',
  );
  return [...new Set(names)];
}

async function run(
  program: string,
  { cwd = project, nodeArguments = [] }: { cwd?: string; nodeArguments?: string[] } = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...nodeArguments, '--input-type=module', '--eval', program],
    { cwd, env: { PATH: process.env.PATH }, maxBuffer: 16 * 1024 * 1024 },
  );
  return stdout;
}

/** Creates a folder with the built package and all its dependencies except one. */
function installationWithout(missing: string): string {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
    dependencies: object;
    peerDependencies: object;
  };
  const packages = Object.keys({ ...dependencies, ...peerDependencies }).filter((name) => name !== missing);
  const folder = temporaryFolder();
  const modules = join(folder, 'node_modules');
  const own = join(modules, 'nestjs-agent-sessions');
  cpSync(join(project, 'dist'), join(own, 'dist'), { recursive: true });
  cpSync(join(project, 'package.json'), join(own, 'package.json'));
  for (const name of packages) {
    mkdirSync(join(modules, name, '..'), { recursive: true });
    symlinkSync(join(project, 'node_modules', name), join(modules, name));
  }
  return folder;
}
