/**
 * Stores on SQLite, PostgreSQL, MySQL and MariaDB, through TypeORM. Pass `typeormAdapter` as `adapter` of
 * `SessionsModule.forRoot`, with a `DataSource` or its options. SQLite files are migrated at startup. For the other
 * databases, run `sessionsMigrations` with the migrations of your application, or set `migrationsRun`.
 * `sessionsEntities` reads the tables with TypeORM.
 *
 * @packageDocumentation
 * @module nestjs-agent-sessions/typeorm
 */

export { sessionsEntities } from './entities.js';
export { sessionsMigrations } from './migrations.js';
export { typeormAdapter } from './typeorm-adapter.js';
export { type TypeormAdapterOptions } from './typeorm-adapter.options.js';
