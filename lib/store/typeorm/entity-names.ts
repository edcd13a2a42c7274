import { type DataSource } from 'typeorm';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { columnName, columnsOf, type TableName, TABLES } from '../sql/columns.js';
import { placeOf } from '../sql/sql-place.js';
import { typeormMessages } from './typeorm.messages.js';

/**
 * Checks that the entities of a DataSource name the store's tables and columns. A naming strategy of the application can
 * rename both (FIX-67). A DataSource without the entities passes.
 * @throws SessionsConfigurationError
 */
export function assertEntityNames({ options, entityMetadatas }: DataSource, tablePrefix: string): void {
  const { prefix, schema } = placeOf(options, tablePrefix);
  for (const table of Object.keys(TABLES) as TableName[]) {
    const metadata = entityMetadatas.find(({ name }) => name === `${tablePrefix}${table}`);
    if (!metadata) continue;
    assertName(`the table of ${metadata.name}`, metadata.tableName, `${prefix}${table}`);
    if (schema !== undefined) assertName(`the schema of ${metadata.name}`, metadata.schema, schema);
    for (const [property] of columnsOf(table)) {
      const column = metadata.findColumnWithPropertyName(property)?.databaseName;
      assertName(`the column ${metadata.name}.${property}`, column, columnName(property));
    }
  }
}

function assertName(what: string, named: string | undefined, stored: string): void {
  if (named === stored) return;
  throw new SessionsConfigurationError(typeormMessages.otherName(what, named, stored));
}
