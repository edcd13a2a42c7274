import { statementsIn, type Migration } from './migrations.js';

/** The migrations' own table, which the application only reads. */
const READ_ONLY = 'schema';

/**
 * Returns statements that need every privilege of the application on every table, and change nothing. An error names the
 * table (FIX-61).
 * @param insert `INSERT IGNORE` in MySQL, which would demand a value for each column otherwise
 */
export function probeStatements(migrations: readonly Migration[], insert = 'INSERT'): string[] {
  return created(migrations, /^CREATE TABLE (?:IF NOT EXISTS )?\{(\w+)\} \(\s*["`]?(\w+)/).flatMap(
    ([, table, column]) => {
      if (table === READ_ONLY) return [];
      return [
        `${insert} INTO {${table}} (${column}) SELECT ${column} FROM {${table}} WHERE 1 = 0`,
        `UPDATE {${table}} SET ${column} = ${column} WHERE 1 = 0`,
        `DELETE FROM {${table}} WHERE 1 = 0`,
      ];
    },
  );
}

/** Returns the names of the tables, without prefix. */
export function tableNames(migrations: readonly Migration[]): string[] {
  return created(migrations, /^CREATE TABLE (?:IF NOT EXISTS )?\{(\w+)\}/).map(([, name]) => name);
}

/** Returns the names of the functions, without prefix. */
export function functionNames(migrations: readonly Migration[]): string[] {
  return created(migrations, /^CREATE FUNCTION \{(\w+)\}/).map(([, name]) => name);
}

/** Returns the match of each statement that creates what `statement` describes. */
function created(migrations: readonly Migration[], statement: RegExp): RegExpExecArray[] {
  const statements = migrations.flatMap(({ up }) => up.flatMap(statementsIn));
  return statements.map((sql) => statement.exec(sql)).filter((match) => match !== null);
}
