import { type DataSource } from 'typeorm';
import { fillStatements } from './fill-sql.js';
import { type Population, populationSql } from './population.js';

/** Fills the tables with the indexes of the migrations, then vacuums them. */
export async function fillPostgres(dataSource: DataSource, population: Population): Promise<void> {
  const sql = populationSql(population, {
    hex: (value) => `lpad(to_hex(${value}), 8, '0')`,
    metadata: `'{"\\"plan\\"":"\\"pro\\"","\\"number\\"":"' || n || '"}'`,
  });
  const numbers = `generate_series(0::bigint, ${population.count - 1}) AS n`;
  for (const statement of fillStatements(sql, population.filledAt, numbers)) await dataSource.query(statement);
  await dataSource.query('VACUUM ANALYZE');
}
