import {
  type Entry,
  type Note,
  type OperationName,
  type Operations,
  type StoreContents,
} from '../../history/history.js';
import { type Recorded } from './scripted-run.js';

/** Makes a type writable at every level. */
type Forged<T> = T extends readonly (infer Item)[]
  ? Forged<Item>[]
  : T extends object
    ? string extends keyof T
      ? T
      : { -readonly [Key in keyof T]: unknown extends T[Key] ? T[Key] : Forged<T[Key]> }
    : T;
type ForgedSession = Forged<StoreContents['sessions'][number]>;

export interface ForgedCall<Op extends OperationName> {
  readonly sent: Forged<{ at: number; process: string; call: number; op: OperationName; args: Operations[Op]['args'] }>;
  readonly end: { at: number; type: string; value: Forged<Operations[Op]['value']> };
}

/** A history that tests change into an invalid one. */
export class Forgery {
  readonly entries: Forged<Entry>[];
  readonly contents: Forged<StoreContents>;
  private added = 0;

  constructor({ entries, contents }: Recorded) {
    this.entries = entries as Forged<Entry>[];
    this.contents = contents as Forged<StoreContents>;
  }

  session(sessionId: string): ForgedSession {
    return found(this.contents.sessions.find((session) => session.sessionId === sessionId));
  }

  turn(key: string): ForgedSession['turns'][number] {
    const turns = this.contents.sessions.flatMap((session) => session.turns);
    return found(turns.find(({ idempotencyKey }) => idempotencyKey === key));
  }

  /** Returns the calls that include these arguments, in order. */
  calls<Op extends OperationName>(op: Op, args: Partial<Operations[Op]['args']>): ForgedCall<Op>[] {
    return this.entries.flatMap((sent) => {
      if (sent.type !== 'invoke' || sent.op !== op || !includes(sent.args, args)) return [];
      const end = this.entries.find(
        (entry) =>
          entry.type !== 'note' &&
          entry.type !== 'invoke' &&
          entry.process === sent.process &&
          entry.call === sent.call,
      );
      return [{ sent, end } as unknown as ForgedCall<Op>];
    });
  }

  call<Op extends OperationName>(op: Op, args: Partial<Operations[Op]['args']>, index = 0): ForgedCall<Op> {
    return found(this.calls(op, args)[index]);
  }

  notes<What extends Note['what']>(what: What): Forged<Extract<Note, { what: What }>>[] {
    return this.entries.filter((entry) => entry.type === 'note' && entry.what === what) as Forged<
      Extract<Note, { what: What }>
    >[];
  }

  /** Adds a call with an immediate answer. */
  add<Op extends OperationName>(
    at: number,
    process: string,
    op: Op,
    args: Operations[Op]['args'],
    value?: Operations[Op]['value'],
  ): void {
    this.added += 1;
    const call = 1000 + this.added;
    this.entries.push({ at, process, type: 'invoke', call, op, args } as unknown as Forged<Entry>);
    if (value === undefined) return;
    this.entries.push({ at: at + 10, process, call, type: 'ok', value } as unknown as Forged<Entry>);
  }

  note(note: Omit<Note, 'type'> & Record<string, unknown>): void {
    this.entries.push({ type: 'note', ...note } as unknown as Forged<Entry>);
  }

  remove(...removed: readonly object[]): void {
    const kept = this.entries.filter((entry) => !removed.includes(entry));
    this.entries.splice(0, this.entries.length, ...kept);
  }

  /** Inserts a period without entries. */
  delayFrom(at: number, us: number): void {
    for (const entry of this.entries) if (entry.at >= at) entry.at += us;
  }
}

function includes(args: object, wanted: object): boolean {
  return Object.entries(wanted).every(([name, value]) => (args as Record<string, unknown>)[name] === value);
}

function found<T>(thing: T | undefined): T {
  if (thing === undefined) throw new Error('The run does not contain this entry.');
  return thing;
}
