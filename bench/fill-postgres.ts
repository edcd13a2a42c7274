import { type DataSource } from 'typeorm';
import { fillStatements } from './fill-sql.js';
import { type Population, populationSql } from './population.js';

/** Fills the tables, with the indexes that the migrations have made, and leaves them as autovacuum would. */
export async function fillPostgres(dataSource: DataSource, population: Population): Promise<void> {
  const sql = populationSql(population, {
    hex: (value) => `lpad(to_hex(${value}), 8, '0')`,
    metadata: `'{"\\"plan\\"":"\\"pro\\"","\\"number\\"":"' || n || '"}'`,
  });
  const numbers = `generate_series(0::bigint, ${population.count - 1}) AS n`;
  for (const statement of fillStatements(sql, population.filledAt, numbers)) await dataSource.query(statement);
  await dataSource.query('VACUUM ANALYZE');
}
