import { type Pool } from 'pg';
import { messagesOf } from './job-system.js';
import { expectSame } from './wrong-answer.error.js';

/** The messages of the sessions, for a peer on PostgreSQL. */
export const CREATE_MESSAGE_TABLE = `CREATE TABLE IF NOT EXISTS bench_message (
  session_id text, position int, role text NOT NULL, content text NOT NULL, PRIMARY KEY (session_id, position))`;

/** $1: session, $2: position, $3 and $4: the messages of the user and the assistant. */
export const INSERT_MESSAGES = `INSERT INTO bench_message (session_id, position, role, content)
  VALUES ($1, $2, 'user', $3), ($1, $2 + 1, 'assistant', $4)`;

/** @throws WrongAnswerError unless the messages are those of this number of turns */
export async function expectMessages(pool: Pool, id: string, turns: number): Promise<void> {
  const sql = 'SELECT content FROM bench_message WHERE session_id = $1 ORDER BY position';
  const { rows } = await pool.query<{ content: string }>(sql, [id]);
  expectSame(
    `log of ${id}`,
    rows.map(({ content }) => content),
    messagesOf(turns),
  );
}
