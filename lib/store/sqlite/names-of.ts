/**
 * The different values of a column in one session, from one to the next in an index that begins with the session, whatever
 * stands under each. Takes the session twice.
 */
export function namesOf(table: string, column: string): string {
  const next = `SELECT MIN(${column}) FROM {${table}} WHERE session_id = ?`;
  return `WITH RECURSIVE found (name) AS (
    ${next}
    UNION ALL
    SELECT (${next} AND ${column} > found.name) FROM found WHERE found.name IS NOT NULL
  )
  SELECT name FROM found WHERE name IS NOT NULL`;
}
