import { type Entry, type Note, type StoreContents } from '../history/history.js';
import { type Call, isDone, pairCalls } from './calls.js';
import { addTo } from './group-by.js';
import { LETTING_GO } from './letting-go.js';
import { toProcesses } from './processes.js';
import {
  type Attempt,
  type FencedCall,
  type Grant,
  type Interval,
  type Run,
  type SessionRun,
  type TurnRun,
} from './run.js';
import { mayHaveEndedAt } from './turn-end.js';

type Draft<T> = {
  -readonly [Key in keyof T]: T[Key] extends readonly (infer Item)[]
    ? Item[]
    : T[Key] extends ReadonlyMap<infer Name, readonly (infer Item)[]>
      ? Map<Name, Item[]>
      : T[Key];
};

/** Groups a history by session and by turn. @throws Error if the history is invalid */
export function toRun(entries: readonly Entry[], contents: StoreContents): Run {
  return new RunBuilder(entries, contents).build();
}

class RunBuilder {
  private readonly calls: readonly Call[];
  private readonly notes: readonly Note[];
  private readonly sessions = new Map<string, Draft<SessionRun>>();
  private readonly turns = new Map<string, Draft<TurnRun>>();
  private readonly submits = new Map<string, Call<'submit'>[]>();
  private readonly attempts = new Map<string, Draft<Attempt>>();

  constructor(
    private readonly entries: readonly Entry[],
    private readonly contents: StoreContents,
  ) {
    this.calls = pairCalls(entries);
    this.notes = entries.filter((entry) => entry.type === 'note').sort((a, b) => a.at - b.at);
  }

  build(): Run {
    this.addContents();
    for (const call of this.calls) this.addCall(call);
    for (const { grants } of [...this.sessions.values(), ...this.turns.values()]) {
      grants.sort((a, b) => a.fence - b.fence);
    }
    for (const note of this.notes) this.addNote(note);
    for (const turn of this.turns.values()) this.complete(turn);
    for (const session of this.sessions.values()) {
      session.turns.sort(byPosition);
      for (const turn of session.turns as Draft<TurnRun>[]) {
        turn.mayHaveEndedAt = mayHaveEndedAt(turn, session, this.submits, this.turns);
      }
    }
    return {
      contents: this.contents,
      calls: this.calls,
      sessions: [...this.sessions.values()],
      turns: this.turns,
      submits: this.submits,
      processes: toProcesses(this.entries),
      outages: this.outages(),
      faults: this.notes.filter(({ what }) => what === 'fault' || what === 'crash').length,
      crashes: this.notes.filter(({ what }) => what === 'crash').length,
      endsAt: this.entries.reduce((latest, { at }) => Math.max(latest, at), 0),
    };
  }

  private addContents(): void {
    for (const contents of this.contents.sessions) {
      this.session(contents.sessionId).contents ??= contents;
      for (const stored of contents.turns) {
        const turn = this.turn(stored.id, contents.sessionId);
        turn.stored ??= stored;
        turn.events = [...(contents.events[stored.id] ?? [])];
      }
    }
  }

  private addCall(call: Call): void {
    switch (call.op) {
      case 'submit':
        this.session(call.args.sessionId).submits.push(call);
        addTo(this.submits, call.args.key, call);
        if (isDone(call)) this.turn(call.value.turnId, call.args.sessionId);
        return;
      case 'claim':
        this.session(call.args.sessionId).claims.push(call);
        if (isDone(call) && call.value) this.addGrant({ ...call.value, ...grantOf(call), by: call });
        return;
      case 'result':
      case 'cancel':
      case 'signal':
        this.turn(call.args.turnId).clients.push(call);
        return;
      default:
        this.addFenced(call);
    }
  }

  private addFenced(call: FencedCall): void {
    const { sessionId, turnId } = call.args;
    this.session(sessionId).fenced.push(call);
    this.turn(turnId, sessionId).fenced.push(call);
    if (call.op !== 'settle') return;
    this.session(sessionId).claims.push(call);
    if (isDone(call) && call.value.next) this.addGrant({ ...call.value.next, ...grantOf(call), by: call });
  }

  private addGrant(grant: Grant): void {
    this.session(grant.sessionId).grants.push(grant);
    this.turn(grant.turnId, grant.sessionId).grants.push(grant);
  }

  private addNote(note: Note): void {
    switch (note.what) {
      case 'begin':
        this.begin(note);
        return;
      case 'abort':
      case 'end': {
        const attempt = this.attempts.get(note.attempt);
        if (attempt) attempt.endedAt = Math.min(attempt.endedAt, note.at);
        return;
      }
      case 'step': {
        const attempt = this.attempts.get(note.attempt) ?? null;
        this.turn(note.turnId).effects.push({ step: note.step, attempt, at: note.at, process: note.process });
        return;
      }
      case 'use':
        this.turn(note.turnId).uses.push(note);
        return;
      case 'event':
        addTo(this.turn(note.turnId).readers, note.reader, note);
    }
  }

  private begin({ attempt, sessionId, turnId, number, tokens, process, at }: Note & { what: 'begin' }): void {
    if (this.attempts.has(attempt)) throw new Error(`Two handlers have the name ${attempt}.`);
    const turn = this.turn(turnId, sessionId);
    const claimed = turn.grants.filter(
      (grant) => grant.process === process && grant.answeredAt <= at && grant.failures + grant.lost + 1 === number,
    );
    const letGo = turn.fenced.find(
      (call) => call.process === process && call.sentAt >= at && LETTING_GO.includes(call.op),
    );
    const begun: Draft<Attempt> = {
      attempt,
      sessionId,
      turnId,
      number,
      tokens,
      process,
      beganAt: at,
      endedAt: letGo?.sentAt ?? Infinity,
      grant: claimed.at(-1) ?? null,
    };
    this.attempts.set(attempt, begun);
    turn.attempts.push(begun);
    this.session(sessionId).attempts.push(begun);
  }

  private complete(turn: Draft<TurnRun>): void {
    const key = turn.stored?.idempotencyKey;
    if (key !== undefined) turn.submits = this.submits.get(key) ?? [];
    if (turn.sessionId !== '') this.session(turn.sessionId).turns.push(turn);
  }

  private outages(): Interval[] {
    const outages: Interval[] = [];
    let from: number | null = null;
    for (const { what, at } of this.notes) {
      if (what === 'outage') from ??= at;
      if (what !== 'recovered' || from === null) continue;
      outages.push({ from, to: at });
      from = null;
    }
    return from === null ? outages : [...outages, { from, to: Infinity }];
  }

  private session(sessionId: string): Draft<SessionRun> {
    let session = this.sessions.get(sessionId);
    if (!session) {
      session = { sessionId, contents: null, turns: [], submits: [], claims: [], grants: [], fenced: [], attempts: [] };
      this.sessions.set(sessionId, session);
    }
    return session;
  }

  /** @param sessionId absent if the client does not report it */
  private turn(turnId: string, sessionId = ''): Draft<TurnRun> {
    let turn = this.turns.get(turnId);
    if (!turn) {
      turn = {
        turnId,
        sessionId,
        stored: null,
        events: [],
        submits: [],
        fenced: [],
        clients: [],
        grants: [],
        attempts: [],
        effects: [],
        uses: [],
        readers: new Map(),
        mayHaveEndedAt: null,
      };
      this.turns.set(turnId, turn);
    }
    if (turn.sessionId === '') turn.sessionId = sessionId;
    return turn;
  }
}

function grantOf({ process, firstSentAt, answeredAt }: Call): Pick<Grant, 'process' | 'firstSentAt' | 'answeredAt'> {
  return { process, firstSentAt, answeredAt };
}

function byPosition(a: TurnRun, b: TurnRun): number {
  return (a.stored?.position ?? Infinity) - (b.stored?.position ?? Infinity) || 0;
}
