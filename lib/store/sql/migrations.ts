import { type DataSourceOptions, type MigrationInterface, type QueryRunner } from 'typeorm';
import { placeOf } from './sql-place.js';

/** A migration of a store's schema. A released migration never changes; later migrations alter its result. */
export interface Migration {
  /** The name, the same in every dialect. It ends with a timestamp, by which TypeORM orders migrations. */
  readonly name: string;
  /** The first migration whose package can still use the tables, because two versions run together during a deploy. */
  readonly usableFrom: number;
  /** SQL files, in order. A statement ends with `;` at the end of a line. For names such as `{turn}`, see `SqlPlace`. */
  readonly up: readonly string[];
  /** The SQL that reverts it. Default: drops the tables and functions that `up` created. */
  readonly down?: readonly string[];
}

/**
 * Returns TypeORM migrations, oldest first. Table names start with the DataSource's `entityPrefix` and `tablePrefix`.
 * @param migrationsOf returns the migrations of a connection's dialect. All dialects use the same names
 */
export function migrationClasses(
  names: readonly string[],
  tablePrefix: string,
  migrationsOf: (options: DataSourceOptions) => readonly Migration[],
): (new () => MigrationInterface)[] {
  return names.map((name, index) => {
    const run = async (runner: QueryRunner, statementsOf: (migration: Migration) => string[]): Promise<void> => {
      const { options } = runner.connection;
      const place = placeOf(options, tablePrefix);
      for (const statement of statementsOf(migrationsOf(options)[index])) await runner.query(place.fill(statement));
    };
    return class implements MigrationInterface {
      readonly name = name;

      up(runner: QueryRunner): Promise<void> {
        return run(runner, ({ up, usableFrom }) => [
          ...up.flatMap(statementsIn),
          // MySQL does not revert it if the process ends before TypeORM has recorded the migration.
          `DELETE FROM {schema} WHERE version = ${index + 1}`,
          `INSERT INTO {schema} (version, usable_from) VALUES (${index + 1}, ${usableFrom})`,
        ]);
      }

      down(runner: QueryRunner): Promise<void> {
        return run(runner, ({ up, down }) => [
          `DELETE FROM {schema} WHERE version = ${index + 1}`,
          ...(down?.flatMap(statementsIn) ?? up.flatMap(statementsIn).reverse().flatMap(dropStatement)),
        ]);
      }
    };
  });
}

/** Returns the statements of a file, without comments between them. `$$` delimits the body of a function. */
export function statementsIn(file: string): string[] {
  const statements: string[] = [];
  let lines: string[] = [];
  let isInBody = false;
  for (const line of file.split('\n')) {
    if (lines.length === 0 && (line === '' || line.startsWith('--'))) continue;
    lines.push(line);
    if (line.split('$$').length === 2) isInBody = !isInBody;
    if (isInBody || !line.endsWith(';')) continue;
    statements.push(lines.join('\n').slice(0, -1));
    lines = [];
  }
  return statements;
}

/** Returns the statements that revert a statement. Indexes are dropped with their tables. */
function dropStatement(create: string): string[] {
  const [, kind, name] = /^CREATE (TABLE|FUNCTION) (?:IF NOT EXISTS )?(\{\w+\})/.exec(create) ?? [];
  return kind ? [`DROP ${kind} ${name}`] : [];
}
