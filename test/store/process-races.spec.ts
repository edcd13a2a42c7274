import { randomUUID } from 'node:crypto';
import { type Checkpoint, type ConversationMessage } from 'nestjs-agent-sessions';
import { type ClaimedTurn, type SettledTurn } from 'nestjs-agent-sessions/adapter';
import { turnRequest } from '../support/ledger-requests.js';
import { StoreProcess } from '../support/store-process.js';
import { STORES, type StoreOptions, type TestStore } from '../support/stores.js';

/** `npm run test:full` runs a thousand races. */
const RACES = numberOfRaces(process.env.RACES ?? '60');
const AT_ONCE = 10;

type Shared = TestStore & { readonly place: () => StoreOptions };

describe.each(STORES.filter((store): store is Shared => store.place !== undefined))(
  'two processes on one session: $name',
  ({ place }) => {
    let processes: StoreProcess[];

    beforeAll(async () => {
      const options = place();
      processes = await Promise.all([StoreProcess.start(options), StoreProcess.start(options)]);
      await Promise.all(processes.map((process) => process.call('init')));
    }, 60_000);

    afterAll(async () => {
      await Promise.all(processes.map((process) => process.kill()));
    });

    it(`TRN-03 never both settle one turn, in ${RACES} races`, async () => {
      for (let begun = 0; begun < RACES; begun += AT_ONCE) {
        await Promise.all(Array.from({ length: Math.min(AT_ONCE, RACES - begun) }, race));
      }
    }, 600_000);

    /** Both run the turn, because the lease of the first claim lapses immediately. Then both settle it. */
    async function race(): Promise<void> {
      const sessionId = randomUUID();
      const turnId = randomUUID();
      const [first] = processes;
      const draft = { id: sessionId, userId: 'ann', attachedSurfaces: [], metadata: {} };
      await first.call('sessions.create', draft, { policy: 'share', maxSurfaces: 1 });
      await first.call('turns.accept', { ...turnRequest(turnId), sessionId });

      const settled = await Promise.all(processes.map((process) => runAndSettle(process, sessionId)));

      expect(settled.filter((outcome) => outcome === 'settled')).toHaveLength(1);
      const checkpoints = await first.call<Checkpoint[]>('checkpoints.history', 'desk', sessionId);
      expect(checkpoints.map(({ turnIndex }) => turnIndex)).toEqual([0]);
      const messages = await first.call<ConversationMessage[]>('conversations.page', sessionId);
      expect(messages.map(({ turnId: of }) => of)).toEqual([turnId]);
    }
  },
);

function numberOfRaces(given: string): number {
  if (/^[1-9]\d*$/.test(given)) return Number(given);
  throw new Error(`RACES must be an integer of at least 1. Received: ${JSON.stringify(given)}.`);
}

async function runAndSettle(process: StoreProcess, sessionId: string): Promise<string> {
  const claim = { holder: randomUUID(), leaseMs: 0, maxLost: 100, suspects: true, windows: {} };
  const claimed = await process.call<ClaimedTurn | null>('turns.claim', sessionId, claim);
  if (!claimed) return 'not claimed';
  const { hold } = claimed;
  const checkpoint = { orchestrator: 'desk', sessionId, turnIndex: 0, turnId: hold.turnId, state: {}, lastRoute: [] };
  const settlement = {
    status: 'awaiting-input',
    messages: [{ id: randomUUID(), role: 'user', content: 'hi' }],
    checkpoint: { ...checkpoint, signature: 'signature', version: '1', summarizedThrough: 0 },
    keepCheckpoints: 'all',
  };
  try {
    await process.call<SettledTurn>('turns.settle', hold, settlement);
    return 'settled';
  } catch (error) {
    expect(error).toMatchObject({ code: 'TURN_FENCED' });
    return 'fenced';
  }
}
