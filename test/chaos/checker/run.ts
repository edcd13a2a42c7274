import { type Turn, type TurnEvent } from 'nestjs-agent-sessions';
import { type FENCED, type Note, type SessionContents, type StoreContents } from '../history/history.js';
import { type Call, type DoneCall } from './calls.js';

/** A run for the rules: the history and the contents of the store, by session and by turn. */
export interface Run {
  readonly contents: StoreContents;
  readonly calls: readonly Call[];
  readonly sessions: readonly SessionRun[];
  readonly turns: ReadonlyMap<string, TurnRun>;
  /** All calls with a key, with any outcome. */
  readonly submits: ReadonlyMap<string, readonly Call<'submit'>[]>;
  readonly processes: ReadonlyMap<string, ProcessRun>;
  readonly outages: readonly Interval[];
  /** Number of faults, including crashes. */
  readonly faults: number;
  /** Number of processes that a handler killed. */
  readonly crashes: number;
  readonly endsAt: number;
}

export interface Interval {
  readonly from: number;
  readonly to: number;
}

/** One process of an actor. */
export interface ProcessRun {
  /** The periods from SIGSTOP to SIGCONT. */
  readonly frozen: readonly Interval[];
  /** The time of its kill, or of its last entry. */
  readonly endsAt: number;
}

export interface SessionRun {
  readonly sessionId: string;
  /** The session in the store; null if it was not read. */
  readonly contents: SessionContents | null;
  /** The turns in the order of the lane; those that are missing in the ledger come last. */
  readonly turns: readonly TurnRun[];
  readonly submits: readonly Call<'submit'>[];
  /** Calls that may claim the lane's next turn. */
  readonly claims: readonly Call<'claim' | 'settle'>[];
  /** Claims in the order of fences. */
  readonly grants: readonly Grant[];
  readonly fenced: readonly FencedCall[];
  /** Handlers in the order of their start. */
  readonly attempts: readonly Attempt[];
}

export type FencedCall = Call<(typeof FENCED)[number]>;

/** The data of one turn. */
export interface TurnRun {
  readonly turnId: string;
  readonly sessionId: string;
  /** The turn in the ledger; null if missing. */
  readonly stored: Turn | null;
  readonly events: readonly TurnEvent[];
  /** The submits with its key. */
  readonly submits: readonly Call<'submit'>[];
  readonly fenced: readonly FencedCall[];
  /** The calls of clients on it. */
  readonly clients: readonly Call<'result' | 'cancel' | 'signal'>[];
  /** Claims in the order of fences. */
  readonly grants: readonly Grant[];
  readonly attempts: readonly Attempt[];
  readonly effects: readonly Effect[];
  /** Tool uses in all attempts. */
  readonly uses: readonly UseNote[];
  /** The events that each reader received. */
  readonly readers: ReadonlyMap<string, readonly EventNote[]>;
  /** See the function of this name. */
  readonly mayHaveEndedAt: number | null;
}

/** A turn that a claim returned, or that a settle handed over. */
export interface Grant {
  readonly sessionId: string;
  readonly turnId: string;
  readonly position: number;
  readonly fence: number;
  readonly failures: number;
  /** Number of earlier lost attempts. */
  readonly lost: number;
  /** Names of the stored steps in the claim. */
  readonly steps: readonly string[];
  readonly process: string;
  readonly by: DoneCall<'claim' | 'settle'>;
  /** The earliest time of the claim. */
  readonly firstSentAt: number;
  /** The latest time of the claim. */
  readonly answeredAt: number;
}

/** One execution of a handler. */
export interface Attempt {
  readonly attempt: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly number: number;
  /** The tokens of the session that it received. */
  readonly tokens: number;
  readonly process: string;
  readonly beganAt: number;
  /** When it was aborted, ended, or its worker released the turn; Infinity if unknown. */
  readonly endedAt: number;
  /** The claim of the handler; null if it started without one. */
  readonly grant: Grant | null;
}

/** An executed step. */
export interface Effect {
  readonly step: string;
  readonly attempt: Attempt | null;
  readonly at: number;
  readonly process: string;
}

export type UseNote = Note & { readonly what: 'use' };
export type EventNote = Note & { readonly what: 'event' };
