import { type DataSourceOptions, type MigrationInterface, type QueryRunner } from 'typeorm';
import { placeOf } from './sql-place.js';

/** One step in the history of a store's schema. A released one never changes: a later one changes what it made. */
export interface Migration {
  /** Ends with a timestamp, by which TypeORM orders migrations. The same in every dialect. */
  readonly name: string;
  /** The first migration whose package can go on with the tables: two versions run side by side during a deploy. */
  readonly usableFrom: number;
  /** SQL files, in order. A statement ends with `;` at the end of a line; `{turn}` stands for a name, see `SqlPlace`. */
  readonly up: readonly string[];
  /** What undoes it. Default: drops the tables and functions that `up` created. */
  readonly down?: readonly string[];
}

/**
 * Migrations as TypeORM takes them, oldest first, for tables that begin with `tablePrefix`.
 * @param migrationsOf those of a connection's dialect; the names are the same in all
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

/** The statements of a file, without the comments between them. A function's body stands between two `$$`. */
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

/** What undoes a statement; indexes go with their tables. */
function dropStatement(create: string): string[] {
  const [, kind, name] = /^CREATE (TABLE|FUNCTION) (\{\w+\})/.exec(create) ?? [];
  return kind ? [`DROP ${kind} ${name}`] : [];
}
