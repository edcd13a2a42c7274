import Database from 'better-sqlite3';
import { fillStatements } from './fill-sql.js';
import { type Population, populationSql } from './population.js';

/** Fills a file that the store has created, while the store is closed. */
export function fillSqlite(file: string, population: Population): void {
  const sql = populationSql(population, {
    hex: (value) => `printf('%08x', ${value})`,
    metadata: `'{"plan":"pro","number":' || n || '}'`,
  });
  const numbers = `(WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${population.count - 1})
    SELECT n FROM numbers)`;
  const db = new Database(file);
  try {
    // Settings for the fill only: in kilobytes, and no log, which would be as large as the file.
    for (const setting of ['cache_size = -1000000', 'journal_mode = OFF', 'synchronous = OFF']) db.pragma(setting);
    for (const statement of fillStatements(sql, population.filledAt, numbers)) db.exec(statement);
    db.pragma('journal_mode = WAL');
  } finally {
    db.close();
  }
}
