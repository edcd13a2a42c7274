import { type AdkEvent, type AdkSession, type AdkSessions, loadAdk } from './adk-library.js';
import { type Benchmark, type Comparison, type Outcome } from './benchmark.js';
import { Conversation, type Payload } from './conversation.js';
import { type Contestant, interleave, timed } from './rounds.js';
import { type Sizes } from './sizes.js';
import { type OpenStore } from './store-server.js';
import { type Stores } from './stores.js';
import { words } from './text.js';
import { expectSame } from './wrong-answer.error.js';

const PAYLOAD: Payload = { checkpointBytes: 5000, messageBytes: 200 };
/** The number of recent events that a turn reads, equal to the number of messages that ours reads. */
const WINDOW = 20;
/** The number of turns per round. */
const SLICES = 5;
const APP = 'bench';
const USER = 'somebody';

export const peerAdk: Benchmark = {
  id: 'PEER-ADK',
  title:
    'How the cost of a turn grows with the history: sessions of the Agent Development Kit, and ours, in one PostgreSQL',
  stores: ['postgres'],
  run,
};

type Measure = 'turn';

/** A session of the kit. */
interface KitConversation {
  runTurns(turns: number): Promise<unknown>;
  fill?(turns: number): Promise<void>;
  verify(): Promise<void>;
}

async function run(stores: Stores, sizes: Sizes): Promise<Outcome> {
  const service = new (loadAdk().DatabaseSessionService)(stores.address);
  try {
    return await compareWith(service, await stores.with(0), sizes);
  } finally {
    // The service cannot be closed, and its open connections would keep the process alive.
    await service.orm?.close();
  }
}

async function compareWith(
  service: AdkSessions,
  store: OpenStore,
  { rounds, peers, history }: Sizes,
): Promise<Outcome> {
  const turns = Math.ceil(peers.turns / SLICES);
  const kinds = {
    'all events': (id: string) => AdkConversation.start(service, `all-${id}`),
    'the last 20 events': (id: string) => AdkConversation.start(service, `window-${id}`, WINDOW),
    ours: (id: string) => Conversation.start(store.adapter, `adk-${id}`, PAYLOAD),
  };
  const contestants: Record<string, Contestant<Measure>> = {};
  for (const [kind, start] of Object.entries<(id: string) => Promise<KitConversation>>(kinds)) {
    const long = await start('long');
    await (long.fill?.(history.long) ?? long.runTurns(history.long));
    let short: KitConversation;
    let started = 0;
    contestants[`${kind}, long`] = { run: () => turnsOf(long, turns), verify: () => long.verify() };
    contestants[`${kind}, short`] = {
      // Use a new session every time, because a session is longer after a round.
      prepare: async () => {
        started += 1;
        short = await start(`short-${started}`);
        await short.runTurns(history.short);
        await store.tidy();
      },
      run: () => turnsOf(short, turns),
      verify: () => short.verify(),
    };
  }
  const measured = await interleave({ rounds, slices: SLICES }, contestants);
  const compare = (kind: string, what: string): Comparison => ({
    what,
    unit: 'ms',
    base: { name: `turn ${history.short}`, rounds: measured[`${kind}, short`].turn },
    measured: { name: `turn ${history.long.toLocaleString('en')}`, rounds: measured[`${kind}, long`].turn },
  });
  return {
    comparisons: [
      compare('all events', 'ADK: getSession, two appendEvent'),
      compare('the last 20 events', 'ADK: the same with numRecentEvents: 20'),
      compare('ours', 'ours: accept, claim with 20 messages, settle'),
    ],
  };
}

async function turnsOf(contestant: KitConversation, turns: number): Promise<{ turn: number }> {
  return { turn: (await timed(() => contestant.runTurns(turns))) / turns };
}

/** Runs a turn like the kit's runner: reads the session, appends the user's message, then the answer with the new state. */
class AdkConversation implements KitConversation {
  private turns = 0;
  private timestamp = Date.now() - 60_000;

  private constructor(
    private readonly service: AdkSessions,
    private readonly sessionId: string,
    private readonly window?: number,
  ) {}

  static async start(service: AdkSessions, sessionId: string, window?: number): Promise<AdkConversation> {
    await service.createSession({ appName: APP, userId: USER, sessionId });
    return new AdkConversation(service, sessionId, window);
  }

  /** Appends turns without reading, to create history. */
  async fill(turns: number): Promise<void> {
    const session = await this.read();
    for (let i = 0; i < turns; i += 1) await this.append(session);
  }

  async runTurns(turns: number): Promise<void> {
    for (let i = 0; i < turns; i += 1) await this.turn();
  }

  async verify(): Promise<void> {
    const { events, state } = await this.read();
    expectSame(
      `events of ${this.sessionId}`,
      events.map(({ content }) => content.parts[0].text),
      Array.from({ length: 2 * this.turns }, (_, n) => words(PAYLOAD.messageBytes, n)),
    );
    const { orderId, note } = stateAfter(this.turns - 1);
    expectSame(`state of ${this.sessionId}`, [state.orderId, state.note], [orderId, note]);
  }

  private async turn(): Promise<void> {
    const session = await this.read(this.window);
    const before = Math.min(2 * this.turns, this.window ?? Infinity);
    if (session.events.length !== before) expectSame(`events of ${this.sessionId}`, session.events.length, before);
    await this.append(session);
  }

  private async append(session: AdkSession): Promise<void> {
    await this.service.appendEvent({ session, event: this.event('user', 2 * this.turns) });
    const answer = this.event('model', 2 * this.turns + 1, stateAfter(this.turns));
    await this.service.appendEvent({ session, event: answer });
    this.turns += 1;
  }

  private event(role: 'user' | 'model', n: number, stateDelta: Record<string, unknown> = {}): AdkEvent {
    // Events are ordered by time, in whole milliseconds.
    this.timestamp += 1;
    return loadAdk().createEvent({
      invocationId: `${this.sessionId}.${this.turns}`,
      author: role,
      timestamp: this.timestamp,
      content: { role, parts: [{ text: words(PAYLOAD.messageBytes, n) }] },
      actions: { stateDelta },
    });
  }

  private async read(numRecentEvents?: number): Promise<AdkSession> {
    const session = await this.service.getSession({
      appName: APP,
      userId: USER,
      sessionId: this.sessionId,
      ...(numRecentEvents === undefined ? {} : { config: { numRecentEvents } }),
    });
    expectSame(`whether session ${this.sessionId} is there`, session !== undefined, true);
    return session!;
  }
}

function stateAfter(turn: number): Record<string, unknown> {
  return { orderId: turn, note: words(PAYLOAD.checkpointBytes, turn) };
}
