import {
  type CancelMode,
  type Checkpoint,
  type JsonValue,
  type Lane,
  type Message,
  type OrchestrationProgress,
  type Turn,
  type TurnEvent,
  type TurnStatus,
  type WhenBusy,
} from 'nestjs-agent-sessions';

/**
 * What the processes of a run saw, each in a file of its own that is only ever appended to: calls and their ends, and what
 * happened in between. A call without an end, because its process was killed, may or may not have happened.
 */
export type Entry = Invocation | Completion | Note;

interface Stamp {
  /** Microseconds of the machine's monotonic clock, which all processes share whatever their wall clocks say. */
  readonly at: number;
  /** A life of an actor: `worker-2.3` is what worker 2 was after two deaths. */
  readonly process: string;
}

export type Invocation<Op extends OperationName = OperationName> = {
  [Name in Op]: Stamp & {
    readonly type: 'invoke';
    /** Numbers the calls of a process. */
    readonly call: number;
    readonly op: Name;
    readonly args: Operations[Name]['args'];
  };
}[Op];

export interface Completion extends Stamp {
  /** `fail`: certainly without effect; `unknown`: perhaps it was done. */
  readonly type: 'ok' | 'fail' | 'unknown';
  readonly call: number;
  /** Of `ok`. */
  readonly value?: unknown;
  /** Of the others: the error's code, else its name. */
  readonly error?: string;
}

/** What is called, by clients through the services, and by workers at the store. */
export interface Operations {
  readonly submit: {
    /** `key` is both the idempotency key and the text of the message; no two messages have the same. */
    readonly args: { readonly sessionId: string; readonly key: string; readonly whenBusy: WhenBusy };
    readonly value: { readonly turnId: string; readonly position: number };
  };
  readonly result: {
    readonly args: { readonly turnId: string };
    /** `text` is the answer, which names the attempt: see `begin`. */
    readonly value: { readonly status: TurnStatus; readonly text: string | null };
  };
  readonly cancel: {
    readonly args: { readonly turnId: string; readonly mode: CancelMode };
    readonly value: { readonly status: TurnStatus };
  };
  readonly signal: {
    readonly args: { readonly turnId: string; readonly name: string; readonly payload: JsonValue };
    /** Whether this payload is the one that counts. */
    readonly value: { readonly accepted: boolean };
  };

  readonly claim: {
    readonly args: { readonly sessionId: string };
    readonly value: Claim | null;
  };
  readonly settle: {
    readonly args: Held & { readonly status: TurnStatus; readonly text: string | null };
    /** `next`: the lane's next turn, claimed in the same commit. */
    readonly value: { readonly next: Claim | null };
  };
  readonly retry: { readonly args: Held; readonly value: { readonly status: TurnStatus } };
  readonly release: { readonly args: Held; readonly value: { readonly status: TurnStatus } };
  readonly wait: {
    readonly args: Held & { readonly signal: string };
    readonly value: { readonly status: TurnStatus };
  };
  readonly renew: { readonly args: Held; readonly value: null };
  readonly saveStep: {
    readonly args: Held & { readonly step: string; readonly value: JsonValue };
    /** What is stored now: of two attempts' values the first. */
    readonly value: { readonly value: JsonValue };
  };
  readonly append: {
    /** `count` events; `number` is the batch's within the attempt. */
    readonly args: Held & { readonly number: number; readonly count: number };
    /** The offset of the last one. */
    readonly value: { readonly last: number };
  };
}

export type OperationName = keyof Operations;

/** The operations that a fence guards. */
export const FENCED = ['settle', 'retry', 'release', 'wait', 'renew', 'saveStep', 'append'] as const;

export interface Held {
  readonly sessionId: string;
  readonly turnId: string;
  readonly fence: number;
}

export interface Claim extends Held {
  readonly position: number;
  readonly failures: number;
  readonly lost: number;
  /** Names of the steps that came with it. */
  readonly steps: readonly string[];
}

export type Note = Stamp & { readonly type: 'note' } & Happening;

/** What is not a call. */
export type Happening =
  /**
   * A handler starts. `attempt` is a name that nothing else has; the answer's text is `<key> <attempt>`. `tokens` is what the
   * session has taken until then, as the handler is told.
   */
  | {
      readonly what: 'begin';
      readonly sessionId: string;
      readonly turnId: string;
      readonly attempt: string;
      readonly number: number;
      readonly tokens: number;
    }
  /** Its AbortSignal is aborted: from here on it is told to do nothing. */
  | { readonly what: 'abort'; readonly turnId: string; readonly attempt: string }
  | { readonly what: 'end'; readonly turnId: string; readonly attempt: string }
  /** It kills its process: the last line of that. */
  | { readonly what: 'crash'; readonly turnId: string; readonly attempt: string }
  /** A step does what it does: it was not stored before. */
  | { readonly what: 'step'; readonly turnId: string; readonly attempt: string; readonly step: string }
  /** A tool was used, by this attempt or by an earlier one whose result was stored; said when the use is over. */
  | {
      readonly what: 'use';
      readonly turnId: string;
      readonly attempt: string;
      readonly callId: string;
      readonly tool: string;
      readonly tokens: number;
      readonly failed: boolean;
    }
  /** A reader of a turn's events is given one. `reader` is a name that nothing else has. */
  | {
      readonly what: 'event';
      readonly turnId: string;
      readonly reader: string;
      readonly offset: number;
      readonly name: string;
    }
  /** What was done to the run, and to whom. */
  | { readonly what: 'fault'; readonly fault: string; readonly target: string }
  /** From `outage` to `recovered` nobody can be blamed for standing still: no process reaches the store. */
  | { readonly what: 'outage' }
  | { readonly what: 'recovered' };

/** What the store held when everything had come to rest. */
export interface StoreContents {
  readonly sessions: readonly SessionContents[];
  /** What should not be there any more, in words: jobs of the queue, keys, leases. */
  readonly leftovers: readonly string[];
}

export interface SessionContents {
  readonly sessionId: string;
  /** In the order of the lane. */
  readonly turns: readonly Turn[];
  readonly messages: readonly Message[];
  /** The oldest first; all are kept. The state of each is a {@link Tally}. */
  readonly checkpoints: readonly Checkpoint[];
  /** By turn. */
  readonly events: Readonly<Record<string, readonly TurnEvent[]>>;
  readonly lane: Lane;
  /** Null: it is gone. */
  readonly orchestration: OrchestrationProgress | null;
}

/** The state that every turn of a run leaves behind. */
export interface Tally {
  /** How many turns succeeded, this one included. */
  readonly turns: number;
  /** See `link`: tells which turns, in which order. */
  readonly chain: string;
}

/** The name of the step in which a tool does what it does. */
export function stepOfCall(callId: string): string {
  return `tool ${callId}`;
}
