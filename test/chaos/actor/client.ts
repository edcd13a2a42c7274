import { setTimeout as delay } from 'node:timers/promises';
import {
  type CancelMode,
  type JsonObject,
  SessionsError,
  StoreUnavailableError,
  type Turn,
  TurnCancelledError,
  TurnFailedError,
  type TurnService,
  TurnSupersededError,
} from 'nestjs-agent-sessions';
import { type HistoryFile } from '../history/history-file.js';
import { type Random } from '../random.js';
import { ORCHESTRATOR, SIGNAL } from './chaos.orchestrator.js';
import { type Load } from './load.js';
import { type Script, writeCulprit, writeScript } from './script.js';

/** Milliseconds that a client waits for a result or for the end of a stream. */
const PATIENCE_MS = 5000;
/** Number of repeats of a call without an answer. */
const RESENDS = 4;

/** A client that submits messages to sessions, and reads, cancels and signals turns. */
export class Client {
  private messages = 0;
  private readonly following = new Set<Promise<void>>();

  constructor(
    private readonly name: string,
    private readonly turns: TurnService,
    private readonly history: HistoryFile,
    private readonly load: Load,
    private readonly random: Random,
  ) {}

  /** Submits a message that kills each process that runs it, during other traffic. */
  async crash(sessionId: string): Promise<void> {
    await delay(this.random.int(200, 1000));
    const turn = await this.submit(sessionId, `${this.name}-culprit`, writeCulprit(this.random));
    if (turn) await expected(this.awaitResult(turn.id));
  }

  /** Runs until the signal is aborted and its pending calls have ended. */
  async speak(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.say();
      await delay(this.random.int(0, 60));
    }
    await Promise.all(this.following);
  }

  private async say(): Promise<void> {
    this.messages += 1;
    const key = `${this.name}-${this.messages}`;
    const sessionId = this.random.pick(this.load.sessions);
    const turn = await this.submit(sessionId, key, writeScript(this.random, this.load));
    if (!turn) return;
    this.follow(turn);
    if (this.random.chance(0.15)) await Promise.all(this.following);
  }

  /** Submits a message. Repeats it while the outcome is unknown, and sometimes after success. */
  private async submit(sessionId: string, key: string, script: Script): Promise<{ readonly id: string } | null> {
    const whenBusy = this.random.pick(this.load.whenBusy);
    const metadata = script as unknown as JsonObject;
    const send = (): Promise<Turn> =>
      this.history.call(
        'submit',
        { sessionId, key, whenBusy },
        () => this.turns.submit(ORCHESTRATOR, { text: key, metadata }, { sessionId, idempotencyKey: key, whenBusy }),
        ({ id, position }) => ({ turnId: id, position }),
      );
    for (let sent = 1; ; sent += 1) {
      try {
        const turn = await send();
        if (this.random.chance(0.05)) await expected(send());
        return turn;
      } catch (error) {
        if (!(error instanceof SessionsError)) throw error;
        if (!(error instanceof StoreUnavailableError) || sent > RESENDS) return null;
        await delay(this.random.int(50, 300));
      }
    }
  }

  /** Runs random operations on a turn, concurrently with later messages. */
  private follow({ id }: { readonly id: string }): void {
    const work = [
      this.random.chance(0.5) && this.awaitResult(id),
      this.random.chance(0.3) && this.read(id, this.random.int(1, 1_000_000)),
      this.random.chance(this.load.cancel) && this.cancel(id, this.random.int(0, 100)),
      this.random.chance(this.load.wait) && this.signal(id, this.random.int(0, 1500)),
    ];
    for (const one of work) {
      if (!one) continue;
      const followed = expected(one).then(() => void this.following.delete(followed));
      this.following.add(followed);
    }
  }

  private async awaitResult(turnId: string): Promise<void> {
    await this.history.call(
      'result',
      { turnId },
      () => this.turns.result(turnId, { timeoutMs: PATIENCE_MS }).catch(asEnd),
      ({ status, reply }) => ({ status, text: reply }),
    );
  }

  private async read(turnId: string, number: number): Promise<void> {
    const reader = `${this.name}-${number}`;
    const signal = AbortSignal.timeout(PATIENCE_MS);
    for await (const { offset, type } of this.turns.readEvents(turnId, { signal })) {
      this.history.note({ what: 'event', turnId, reader, offset, name: type });
    }
  }

  private async cancel(turnId: string, afterMs: number): Promise<void> {
    await delay(afterMs);
    const mode: CancelMode = 'cancel';
    await this.history.call('cancel', { turnId, mode }, () => this.turns.cancel(turnId), statusOf);
  }

  private async signal(turnId: string, afterMs: number): Promise<void> {
    await delay(afterMs);
    const payload = this.name;
    await this.history.call(
      'signal',
      { turnId, name: SIGNAL, payload },
      () => this.turns.signal(turnId, SIGNAL, payload),
      ({ accepted }) => ({ accepted }),
    );
  }
}

/** A turn that does not succeed rejects with an error. */
function asEnd(error: unknown): { status: Turn['status']; reply: null } {
  if (error instanceof TurnFailedError) return { status: 'failed', reply: null };
  if (error instanceof TurnCancelledError) return { status: 'cancelled', reply: null };
  if (error instanceof TurnSupersededError) return { status: 'superseded', reply: null };
  throw error;
}

/** Ignores typed errors, which the history records; other errors end the run. */
async function expected<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof SessionsError) return null;
    throw error;
  }
}

function statusOf({ status }: Turn): { status: Turn['status'] } {
  return { status };
}
