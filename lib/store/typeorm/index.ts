/**
 * Stores on SQLite, PostgreSQL, MySQL and MariaDB, through TypeORM.
 * @module nestjs-agent-sessions/typeorm
 */

export { sessionsEntities } from './entities.js';
export { sessionsMigrations } from './migrations.js';
export { typeormAdapter } from './typeorm-adapter.js';
export { type TypeormAdapterOptions } from './typeorm-adapter.options.js';
