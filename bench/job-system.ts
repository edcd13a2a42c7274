import { type TurnSystem } from './turn-system.js';
import { words } from './text.js';
import { type Witness } from './witness.js';
import { expectSame } from './wrong-answer.error.js';

/** The servers and files of a system, which needs some of them. */
export interface JobPlaces {
  /** The URL of PostgreSQL or MariaDB, or the path of a SQLite file. */
  readonly database: string;
  /** The connection of a BullMQ queue. */
  readonly redis: string;
}

export interface JobOptions {
  readonly places: JobPlaces;
  /** The number of concurrent turns. */
  readonly concurrency: number;
  /** The prefix of the session ids, new in every slice. */
  readonly prefix: string;
  /** Observes all turns in this process. */
  readonly witness: Witness;
}

/**
 * A system that runs a whole turn: it reads the session's stored data, answers, stores the next checkpoint and both messages, and returns
 * the answer to the caller.
 */
export type JobSystem = Omit<TurnSystem, 'submit'>;

export interface JobState extends Record<string, unknown> {
  readonly turn: number;
  readonly note: string;
}

const STATE_BYTES = 5000;
const MESSAGE_BYTES = 200;

/** Returns the user's message, which begins with the number of the turn. */
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

/** Returns the log of a session after this number of turns. */
export function messagesOf(turns: number): string[] {
  return Array.from({ length: turns }, (_, turn) => [question(turn), answer(turn)]).flat();
}

/** @throws WrongAnswerError */
export function expectAnswer(session: number, turn: number, given: string | null): void {
  if (given !== answer(turn)) expectSame(`answer of turn ${turn} of session ${session}`, given, answer(turn));
}

/** @param stored the state that a turn finds; none for the first one. @throws WrongAnswerError */
export function expectStateBefore(turn: number, id: string, stored: number | undefined): void {
  if (turn > 0) expectSame(`state before turn ${turn} of ${id}`, stored, turn - 1);
}
