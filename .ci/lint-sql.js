// Checks every PL/pgSQL function with plpgsql_check (Debian's package postgresql-15-plpgsql-check): unknown names and types,
// unused variables and parameters, missing RETURNs. DDL is checked by running it: here, and in the tests of each dialect.
// Needs the build and the test programs: npm run build && npm run build:samples.
import pg from 'pg';
import { DataSource } from 'typeorm';
import { startPrivateService } from '../build/test/support/services/services.js';
import { postgres } from '../build/test/support/services/postgres.js';
import { sessionsMigrations } from '../dist/store/typeorm/index.js';

const server = await startPrivateService(postgres);
try {
  const dataSource = await new DataSource({
    type: 'postgres',
    url: server.url,
    migrations: sessionsMigrations(),
  }).initialize();
  await dataSource.runMigrations();
  await dataSource.destroy();

  const client = new pg.Client(server.url);
  await client.connect();
  await client.query('CREATE EXTENSION plpgsql_check');
  const { rows } = await client.query(`
    SELECT function.proname AS name, found.lineno, found.level, found.message, found.hint
    FROM pg_proc AS function JOIN pg_language AS language ON language.oid = function.prolang,
      plpgsql_check_function_tb(function.oid, performance_warnings => false) AS found
    WHERE language.lanname = 'plpgsql' AND function.proname LIKE 'agent\\_%'
    ORDER BY name, lineno`);
  await client.end();
  for (const { name, lineno, level, message, hint } of rows) {
    console.error(`${name}:${lineno ?? ''} ${level}: ${message}${hint ? ` (${hint})` : ''}`);
  }
  console.log(`${rows.length} findings.`);
  if (rows.length > 0) process.exitCode = 1;
} finally {
  await server.stop();
}
