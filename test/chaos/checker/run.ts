import { type Turn, type TurnEvent } from 'nestjs-agent-sessions';
import { type FENCED, type Note, type SessionContents, type StoreContents } from '../history/history.js';
import { type Call, type DoneCall } from './calls.js';

/** A run as the rules look at it: what was written down and what was found in the store, by session and by turn. */
export interface Run {
  readonly contents: StoreContents;
  readonly calls: readonly Call[];
  readonly sessions: readonly SessionRun[];
  readonly turns: ReadonlyMap<string, TurnRun>;
  /** Every call that sent a key, whatever became of it. */
  readonly submits: ReadonlyMap<string, readonly Call<'submit'>[]>;
  readonly processes: ReadonlyMap<string, ProcessRun>;
  readonly outages: readonly Interval[];
  /** How many, crashes included. */
  readonly faults: number;
  /** How often a handler killed its process. */
  readonly crashes: number;
  readonly endsAt: number;
}

export interface Interval {
  readonly from: number;
  readonly to: number;
}

/** One life of an actor. */
export interface ProcessRun {
  /** From each SIGSTOP to its SIGCONT. */
  readonly frozen: readonly Interval[];
  /** Its kill, or else its last sign of life. */
  readonly endsAt: number;
}

export interface SessionRun {
  readonly sessionId: string;
  /** Null: it was not looked for in the store. */
  readonly contents: SessionContents | null;
  /** In the order of the lane; those that the ledger does not have at the end. */
  readonly turns: readonly TurnRun[];
  readonly submits: readonly Call<'submit'>[];
  /** Whatever may claim the lane's next turn. */
  readonly claims: readonly Call<'claim' | 'settle'>[];
  /** By fence. */
  readonly grants: readonly Grant[];
  readonly fenced: readonly FencedCall[];
  /** In the order in which they began. */
  readonly attempts: readonly Attempt[];
}

export type FencedCall = Call<(typeof FENCED)[number]>;

/** What is known of one turn. */
export interface TurnRun {
  readonly turnId: string;
  readonly sessionId: string;
  /** Null: the ledger does not have it. */
  readonly stored: Turn | null;
  readonly events: readonly TurnEvent[];
  /** Those with its key. */
  readonly submits: readonly Call<'submit'>[];
  readonly fenced: readonly FencedCall[];
  /** What clients did with it. */
  readonly clients: readonly Call<'result' | 'cancel' | 'signal'>[];
  /** By fence. */
  readonly grants: readonly Grant[];
  readonly attempts: readonly Attempt[];
  readonly effects: readonly Effect[];
  /** Of tools, in all of its attempts. */
  readonly uses: readonly UseNote[];
  /** What each reader was given. */
  readonly readers: ReadonlyMap<string, readonly EventNote[]>;
  /** See the function of this name. */
  readonly mayHaveEndedAt: number | null;
}

/** A turn that a claim gave, or that a settle handed over. */
export interface Grant {
  readonly sessionId: string;
  readonly turnId: string;
  readonly position: number;
  readonly fence: number;
  readonly failures: number;
  /** Attempts that were lost with their process before this one. */
  readonly lost: number;
  /** Names of the stored steps that came with it. */
  readonly steps: readonly string[];
  readonly process: string;
  readonly by: DoneCall<'claim' | 'settle'>;
  /** It was given after this one ... */
  readonly firstSentAt: number;
  /** ... and before this one. */
  readonly answeredAt: number;
}

/** A run of a handler. */
export interface Attempt {
  readonly attempt: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly number: number;
  /** What it was told that the session has taken. */
  readonly tokens: number;
  readonly process: string;
  readonly beganAt: number;
  /** When it was told to stop, had ended, or its worker let go of the turn; Infinity when nothing tells. */
  readonly endedAt: number;
  /** Null: it began without a claim. */
  readonly grant: Grant | null;
}

/** A step did what it does. */
export interface Effect {
  readonly step: string;
  readonly attempt: Attempt | null;
  readonly at: number;
  readonly process: string;
}

export type UseNote = Note & { readonly what: 'use' };
export type EventNote = Note & { readonly what: 'event' };
