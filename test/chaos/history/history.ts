import {
  type CancelMode,
  type Checkpoint,
  type JsonValue,
  type Lane,
  type ConversationMessage,
  type StepPredicateContext,
  type Turn,
  type TurnEvent,
  type TurnStatus,
  type WhenBusy,
} from 'nestjs-agent-sessions';

/**
 * The observations of the processes of a run, one append-only file each: calls with their outcomes, and other events
 * in between. A call without an outcome, because its process was killed, may or may not have taken effect.
 */
export type Entry = Invocation | Completion | Note;

interface Stamp {
  /** Microseconds of the machine's monotonic clock, which all processes share, independent of their wall clocks. */
  readonly at: number;
  /** A process of an actor: `worker-2.3` is worker 2 after two restarts. */
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
  /** `fail`: certainly without effect; `unknown`: the call may have taken effect. */
  readonly type: 'ok' | 'fail' | 'unknown';
  readonly call: number;
  /** The result of `ok`. */
  readonly value?: unknown;
  /** The error code or name of `fail` and `unknown`. */
  readonly error?: string;
}

/** The calls of clients to the services, and of workers to the store. */
export interface Operations {
  readonly submit: {
    /** `key` is both the idempotency key and the text of the message, and unique. */
    readonly args: { readonly sessionId: string; readonly key: string; readonly whenBusy: WhenBusy };
    readonly value: { readonly turnId: string; readonly position: number };
  };
  readonly result: {
    readonly args: { readonly turnId: string };
    /** `text` is the reply, which names the attempt: see `begin`. */
    readonly value: { readonly status: TurnStatus; readonly text: string | null };
  };
  readonly cancel: {
    readonly args: { readonly turnId: string; readonly mode: CancelMode };
    readonly value: { readonly status: TurnStatus };
  };
  readonly signal: {
    readonly args: { readonly turnId: string; readonly name: string; readonly payload: JsonValue };
    /** True if this payload was applied. */
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
    /** The stored value: the first of several attempts. */
    readonly value: { readonly value: JsonValue };
  };
  readonly append: {
    /** `count` events; `number` is the batch's within the attempt. */
    readonly args: Held & { readonly number: number; readonly count: number };
    /** The offset of the last event. */
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
  /** Names of the stored steps in the claim. */
  readonly steps: readonly string[];
}

export type Note = Stamp & { readonly type: 'note' } & Happening;

/** Entries that are not calls. */
export type Happening =
  /**
   * A handler starts. `attempt` is a unique name; the reply text is `<key> <attempt>`. `tokens` are the tokens of the
   * session so far, as the handler sees them.
   */
  | {
      readonly what: 'begin';
      readonly sessionId: string;
      readonly turnId: string;
      readonly attempt: string;
      readonly number: number;
      readonly tokens: number;
    }
  /** The AbortSignal of the handler is aborted: it must stop. */
  | { readonly what: 'abort'; readonly turnId: string; readonly attempt: string }
  | { readonly what: 'end'; readonly turnId: string; readonly attempt: string }
  /** The handler kills its process. This is the last line of the process. */
  | { readonly what: 'crash'; readonly turnId: string; readonly attempt: string }
  /** A step is executed, because it was not stored. */
  | { readonly what: 'step'; readonly turnId: string; readonly attempt: string; readonly step: string }
  /** A tool was used, by this attempt or by an earlier one whose result was stored. Recorded when the use has ended. */
  | {
      readonly what: 'use';
      readonly turnId: string;
      readonly attempt: string;
      readonly callId: string;
      readonly tool: string;
      readonly tokens: number;
      readonly failed: boolean;
    }
  /** A reader receives an event of a turn. `reader` is a unique name. */
  | {
      readonly what: 'event';
      readonly turnId: string;
      readonly reader: string;
      readonly offset: number;
      readonly name: string;
    }
  /** A fault and its target. */
  | { readonly what: 'fault'; readonly fault: string; readonly target: string }
  /** From `outage` to `recovered` no process reaches the store, so stalls are not violations. */
  | { readonly what: 'outage' }
  | { readonly what: 'recovered' };

/** The contents of the store at the end of the run. */
export interface StoreContents {
  readonly sessions: readonly SessionContents[];
  /** Descriptions of data that should not remain: jobs of the queue, keys, leases. */
  readonly leftovers: readonly string[];
}

export interface SessionContents {
  readonly sessionId: string;
  /** Turns in the order of the lane. */
  readonly turns: readonly Turn[];
  readonly messages: readonly ConversationMessage[];
  /** All checkpoints, oldest first. The state of each is a {@link Tally}. */
  readonly checkpoints: readonly Checkpoint[];
  /** Events by turn. */
  readonly events: Readonly<Record<string, readonly TurnEvent[]>>;
  readonly lane: Lane;
  /** Null if it does not exist. */
  readonly orchestration: StepPredicateContext['state'] | null;
}

/** The orchestrator state after each turn of a run. */
export interface Tally {
  /** Number of successful turns, including this one. */
  readonly turns: number;
  /** Identifies the turns and their order, see `link`. */
  readonly chain: string;
}

/** Returns the name of the step of a tool call. */
export function stepOfCall(callId: string): string {
  return `tool ${callId}`;
}
