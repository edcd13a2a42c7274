import { type MigrationInterface, type QueryRunner } from 'typeorm';
import { dialectOf } from '../sql/dialects.js';
import { placeOf } from '../sql/sql-place.js';

/** The migration that the tables must be at: as many as there are. */
export const SCHEMA_VERSION = 1;
/** The first one whose tables an older package, still running during a deploy, can go on with. */
const USABLE_FROM = 1;

/**
 * The migrations of this package, oldest first, for tables that begin with `tablePrefix` and for every dialect. The adapter
 * runs them by itself on SQLite, elsewhere with `migrationsRun: true`; or give them to TypeORM's CLI (NST-23).
 */
export function sessionsMigrations(tablePrefix = 'agent_'): (new () => MigrationInterface)[] {
  class CreateSessions1763683200000 implements MigrationInterface {
    // TypeORM orders migrations by the timestamp in their name.
    readonly name = 'CreateSessions1763683200000';

    async up(queryRunner: QueryRunner): Promise<void> {
      const { options } = queryRunner.connection;
      const place = placeOf(options, tablePrefix);
      for (const statement of dialectOf(options).create) await queryRunner.query(place.fill(statement));
      await queryRunner.query(place.fill(`INSERT INTO {schema} VALUES (${SCHEMA_VERSION}, ${USABLE_FROM})`));
    }

    async down(queryRunner: QueryRunner): Promise<void> {
      const { options } = queryRunner.connection;
      const place = placeOf(options, tablePrefix);
      for (const statement of [...dialectOf(options).create].reverse()) {
        const drop = dropStatement(statement);
        if (drop) await queryRunner.query(place.fill(drop));
      }
    }
  }

  return [CreateSessions1763683200000];
}

/** What undoes a statement; indexes go with their tables. */
function dropStatement(create: string): string | undefined {
  const [, kind, name] = /^\s*CREATE (TABLE|FUNCTION) (?:IF NOT EXISTS )?(\{\w+\})/.exec(create) ?? [];
  return kind && `DROP ${kind} ${name}`;
}
