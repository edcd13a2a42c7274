import { type Migration } from '../sql/migrations.js';
import tables from './migrations/0001-create-sessions/tables.sql.js';

export const MYSQL_MIGRATIONS: readonly Migration[] = [
  { name: 'CreateSessions1763683200000', usableFrom: 1, up: [tables] },
];
