import { join } from 'node:path';
import { EventSource } from 'eventsource';
import { type TurnEnd } from 'nestjs-agent-sessions/client';
import { eventually } from '../support/eventually.js';
import { SampleProcess } from '../support/sample-process.js';
import { temporaryFolder } from '../support/stores.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { Customer, type TurnView } from './support-desk-client.js';

const QUESTION = 'What is your policy?';
/** The answer takes some seconds. */
const LIMIT_MS = 25_000;

describe('the support desk streams an answer', () => {
  let file: string;
  let sample: SampleProcess;
  let ann: Customer;
  let client: Client | undefined;

  beforeEach(async () => {
    file = join(temporaryFolder(), 'support-desk.db');
    sample = await SampleProcess.start(file);
    ann = await Customer.arrive(sample);
  });

  afterEach(async () => {
    client?.source.close();
    await sample.stop('SIGKILL');
  });

  it('TRN-32 an EventSource shows it word by word, and does not come again after the end', async () => {
    const { id } = await submit();
    client = open(id);
    await eventually(() => textOf(client).length > 0);
    expect((await ann.turn(id)).status).toBe('running');
    await eventually(() => endOf(client), { limitMs: LIMIT_MS });

    const { reply } = await ann.turn(id);
    expect(textOf(client)).toBe(reply);
    expect(endOf(client)).toEqual({
      id,
      sessionId: ann.sessionId,
      status: 'awaiting-input',
      turnIndex: 0,
      reply,
    } satisfies TurnEnd);
    // It connects again by itself, is answered 204, and gives up.
    await eventually(() => client?.source.readyState === EventSource.CLOSED);
    expect(client.answers).toEqual([200, 204]);
    expectNoGaps(client);
  });

  it('TRN-32 a connection that breaks resumes exactly at its last event', async () => {
    const { id } = await submit();
    const proxy = await TcpProxy.start(sample.url);
    client = open(id, proxy.url);
    await eventually(() => (client?.shown.length ?? 0) > 3);
    proxy.cut();
    const shown = client.shown.length;
    proxy.restore();
    await eventually(() => endOf(client), { limitMs: LIMIT_MS });
    await proxy.stop();

    expect(client.answers.length).toBeGreaterThan(1);
    expect(client.shown.length).toBeGreaterThan(shown);
    expectNoGaps(client);
    expect(textOf(client)).toBe((await ann.turn(id)).reply);
  });

  it('TRN-32 TRN-15 SIGKILL in mid-answer: nothing shown is lost, and the next attempt goes on in the same stream', async () => {
    const { id } = await submit();
    client = open(id);
    await eventually(() => (client?.shown.length ?? 0) > 3);
    await sample.stop('SIGKILL');
    const before = [...client.shown];
    sample = await SampleProcess.start(file);
    ann = ann.at(sample);
    await eventually(() => endOf(client), { limitMs: LIMIT_MS });

    expect(client.shown.slice(0, before.length)).toEqual(before);
    expectNoGaps(client);
    const types = client.shown.map(({ type }) => type);
    const again = types.indexOf('attempt');
    expect(again).toBeGreaterThanOrEqual(before.length);
    expect(client.shown[again].data).toEqual({ attempt: 2 });
    expect(types.filter((type) => type !== 'delta')).toEqual(['attempt', 'settled']);
    // What was said before is said anew.
    expect(textOf({ shown: client.shown.slice(again) })).toBe((await ann.turn(id)).reply);
  });

  it('TRN-32 NST-11 rejects turns of other users, of other sessions and unknown ones in the same way', async () => {
    const { id } = await submit();
    const bob = await Customer.arrive(sample, 'bob');
    const second = await Customer.arrive(sample);
    for (const [who, turnId] of [
      [bob, id],
      [second, id],
      [ann, 'unknown'],
    ] as const) {
      for (const answer of [
        await who.ask(`/turns/${turnId}/events`),
        await who.ask(`/turns/${turnId}/cancel`, { method: 'POST' }),
      ]) {
        expect(answer).toMatchObject({ status: 404, body: { code: 'TURN_NOT_FOUND', turnId } });
      }
    }
    expect((await ann.turn(id)).status).toBe('running');
  });

  async function submit(): Promise<TurnView> {
    const { status, body } = await ann.ask('/turns/submit', { method: 'POST', body: { input: QUESTION } });
    expect(status).toBe(202);
    return body as TurnView;
  }

  /** Asks whichever process runs now, as a load balancer would see to it. */
  function open(turnId: string, url?: string): Client {
    const shown: Shown[] = [];
    const answers: number[] = [];
    const source = new EventSource(`http://support-desk/turns/${turnId}/events`, {
      fetch: async (asked, init) => {
        const headers = { ...init.headers, ...ann.headers };
        const place = new URL(new URL(asked).pathname, url ?? sample.url);
        const response = await fetch(place, { ...(init as RequestInit), headers });
        answers.push(response.status);
        return response;
      },
    });
    for (const type of ['delta', 'attempt', 'settled']) {
      source.addEventListener(type, ({ lastEventId, data }) =>
        shown.push({ id: Number(lastEventId), type, data: JSON.parse(data as string) as unknown }),
      );
    }
    return { source, shown, answers };
  }
});

interface Shown {
  readonly id: number;
  readonly type: string;
  readonly data: unknown;
}

interface Client {
  readonly source: EventSource;
  readonly shown: Shown[];
  /** Status codes, one a connection. */
  readonly answers: number[];
}

function textOf(client: Pick<Client, 'shown'> | undefined): string {
  const deltas = client?.shown.filter(({ type }) => type === 'delta') ?? [];
  return deltas
    .map(({ data }) => (data as { text: string }).text)
    .join('')
    .trimEnd();
}

function endOf(client: Client | undefined): TurnEnd | undefined {
  return client?.shown.find(({ type }) => type === 'settled')?.data as TurnEnd | undefined;
}

function expectNoGaps({ shown }: Client): void {
  expect(shown.map(({ id }) => id)).toEqual(shown.map((_, at) => at + 1));
}
