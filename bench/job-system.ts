import { type TurnSystem } from './turn-system.js';
import { words } from './text.js';
import { type Witness } from './witness.js';
import { expectSame } from './wrong-answer.error.js';

/** Where a system has its data; each needs some of them. */
export interface JobPlaces {
  /** Of PostgreSQL or MariaDB; of SQLite the path of a file. */
  readonly database: string;
  /** Of a BullMQ queue. */
  readonly redis: string;
}

export interface JobOptions {
  readonly places: JobPlaces;
  /** How many turns run at once. */
  readonly concurrency: number;
  /** Before the ids of the sessions: every slice has new ones. */
  readonly prefix: string;
  /** Told of everything that runs here. */
  readonly witness: Witness;
}

/**
 * What does a whole turn: it reads what the session has stored, answers, stores the next checkpoint and both messages, and gives
 * the answer to the caller.
 */
export type JobSystem = Omit<TurnSystem, 'submit'>;

export interface JobState extends Record<string, unknown> {
  readonly turn: number;
  readonly note: string;
}

const STATE_BYTES = 5000;
const MESSAGE_BYTES = 200;

/** What the user says. It begins with the number of the turn. */
export function question(turn: number): string {
  return `${turn} ${words(MESSAGE_BYTES, 2 * turn)}`;
}

export function turnOf(said: string): number {
  return Number.parseInt(said, 10);
}

export function answer(turn: number): string {
  return words(MESSAGE_BYTES, 2 * turn + 1);
}

export function stateAfter(turn: number): JobState {
  return { turn, note: words(STATE_BYTES, turn) };
}

/** The log of a session that had so many turns. */
export function messagesOf(turns: number): string[] {
  return Array.from({ length: turns }, (_, turn) => [question(turn), answer(turn)]).flat();
}

/** @throws WrongAnswerError */
export function expectAnswer(session: number, turn: number, given: string | null): void {
  if (given !== answer(turn)) expectSame(`answer of turn ${turn} of session ${session}`, given, answer(turn));
}

/** @param stored what a turn finds; the first one finds nothing. @throws WrongAnswerError */
export function expectStateBefore(turn: number, id: string, stored: number | undefined): void {
  if (turn > 0) expectSame(`state before turn ${turn} of ${id}`, stored, turn - 1);
}
