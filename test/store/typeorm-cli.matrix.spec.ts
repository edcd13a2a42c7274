import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { SessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { sessionsMigrations, typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { describeSqlServers } from '../support/servers.js';
import { temporaryFolder } from '../support/stores.js';

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));
const CLI = join(CHECKOUT, 'node_modules/typeorm/cli.js');

/** The folder of an application with the built package and TypeORM installed. */
function applicationFolder(type: 'module' | 'commonjs', source: string): string {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(CHECKOUT, join(folder, 'node_modules/nestjs-agent-sessions'));
  symlinkSync(join(CHECKOUT, 'node_modules/typeorm'), join(folder, 'node_modules/typeorm'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type }));
  writeFileSync(join(folder, 'data-source.js'), source);
  return folder;
}

describeSqlServers('migrations by the application', ({ type, url }) => {
  let tablePrefix: string;

  beforeEach(() => {
    tablePrefix = `m${randomUUID().slice(0, 8)}_`;
  });

  it.each([
    [
      'module',
      `import { sessionsMigrations } from 'nestjs-agent-sessions/typeorm';
       import { DataSource } from 'typeorm';
       export default`,
    ],
    [
      'commonjs',
      `const { sessionsMigrations } = require('nestjs-agent-sessions/typeorm');
       const { DataSource } = require('typeorm');
       module.exports =`,
    ],
  ] as const)(
    "NST-23 TypeORM's command line creates, shows and reverts the tables: %s",
    async (kind, beginning) => {
      const folder = applicationFolder(
        kind,
        `${beginning} new DataSource({
        type: '${type}',
        url: process.env.DATABASE_URL,
        migrations: sessionsMigrations('${tablePrefix}'),
        migrationsTableName: '${tablePrefix}migrations',
      });`,
      );
      const typeorm = async (command: string): Promise<string> => {
        const args = ['--disable-warning=ExperimentalWarning', CLI, command, '-d', 'data-source.js'];
        const options = { cwd: folder, env: { ...process.env, DATABASE_URL: url } };
        return (await promisify(execFile)(process.execPath, args, options)).stdout;
      };
      expect(await typeorm('migration:show')).toContain('[ ] CreateSessions1763683200000');

      await typeorm('migration:run');
      expect(await typeorm('migration:show')).toMatch(/\[X\] \d+ CreateSessions1763683200000/);
      await expect(useStore()).resolves.toMatchObject({ userId: 'ann' });

      await typeorm('migration:revert');
      expect(await typeorm('migration:show')).toContain('[ ] CreateSessions1763683200000');
      await expect(useStore()).rejects.toThrow(/at migration 0/);
    },
    60_000,
  );

  it('NST-23 the migrations run among those of the application, in the order of their timestamps', async () => {
    class Earlier1700000000000 extends OwnMigration {
      protected readonly table = `${tablePrefix}own_first`;
    }
    class Later1800000000000 extends OwnMigration {
      protected readonly table = `${tablePrefix}own_second`;
    }
    const dataSource = await new DataSource({
      type,
      url,
      migrations: [...sessionsMigrations(tablePrefix), Later1800000000000, Earlier1700000000000],
      migrationsTableName: `${tablePrefix}of_application`,
    }).initialize();

    const names = (await dataSource.runMigrations()).map(({ name }) => name);
    expect(names).toEqual(['Earlier1700000000000', 'CreateSessions1763683200000', 'Later1800000000000']);
    await expect(useStore()).resolves.toMatchObject({ userId: 'ann' });

    await dataSource.undoLastMigration();
    await expect(useStore()).resolves.toMatchObject({ userId: 'ann' });
    await dataSource.undoLastMigration();
    await expect(useStore()).rejects.toThrow(/at migration 0/);
    await dataSource.destroy();
  });

  /** Opens the store as an application that does not migrate at the start. */
  async function useStore(): Promise<unknown> {
    const store: SessionsAdapter = typeormAdapter({ dataSource: { type, url, poolSize: 2 }, tablePrefix });
    try {
      await store.init?.();
      return await new SessionStore(store.sessions).create({ userId: 'ann' });
    } finally {
      await store.close?.();
    }
  }
});

abstract class OwnMigration implements MigrationInterface {
  protected abstract readonly table: string;

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`CREATE TABLE ${this.table} (id INT)`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE ${this.table}`);
  }
}
