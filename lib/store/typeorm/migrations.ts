import { type MigrationInterface, type QueryRunner } from 'typeorm';
import { createTables } from './sqlite/schema.js';
import { TABLES } from './table-definitions.js';

/**
 * The migrations of this package, oldest first, for tables that begin with `tablePrefix`. The adapter runs them by
 * itself on SQLite; elsewhere give them to TypeORM's CLI.
 */
export function sessionsMigrations(tablePrefix = 'agent_'): (new () => MigrationInterface)[] {
  class CreateSessions1763683200000 implements MigrationInterface {
    // TypeORM orders migrations by the timestamp in their name.
    readonly name = 'CreateSessions1763683200000';

    async up(queryRunner: QueryRunner): Promise<void> {
      for (const statement of createTables(tablePrefix)) await queryRunner.query(statement);
    }

    async down(queryRunner: QueryRunner): Promise<void> {
      for (const table of Object.keys(TABLES)) await queryRunner.query(`DROP TABLE "${tablePrefix}${table}"`);
    }
  }

  return [CreateSessions1763683200000];
}
