import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { BENCH } from './chart-library.js';
import { clock, EVERY_MS, expectNumbers, type Token } from './stream-host.js';
import { WrongAnswerError } from './wrong-answer.error.js';

/** The parts of resumable-stream that the benchmarks use. */
interface Library {
  createResumableStreamContext(options: {
    readonly waitUntil: null;
    readonly publisher: Redis;
    readonly subscriber: Redis;
  }): Context;
}

interface Context {
  createNewResumableStream(id: string, make: () => ReadableStream<string>): Promise<ReadableStream<string> | null>;
  resumeExistingStream(id: string): Promise<ReadableStream<string> | null | undefined>;
}

/** Streams the same tokens through resumable-stream, one per line. It keeps them in the producer's memory. */
export class ResumableHost {
  private clients: Redis[] = [];
  private context!: Context;
  private made: Promise<number> | null = null;

  async open(url: string): Promise<void> {
    // It is installed in `bench/` only.
    const library = createRequire(BENCH)('resumable-stream/ioredis') as Library;
    const [publisher, subscriber] = (this.clients = [new Redis(url), new Redis(url)]);
    this.context = library.createResumableStreamContext({ waitUntil: null, publisher, subscriber });
  }

  /** Starts a stream. */
  async make(streamId: string, count: number): Promise<void> {
    let madeMs: (ms: number) => void;
    this.made = new Promise((resolve) => (madeMs = resolve));
    const startedAt = performance.now();
    const tokens = new ReadableStream<string>({
      start: async (controller) => {
        for (let n = 0; n < count; n += 1) {
          await delay(EVERY_MS);
          controller.enqueue(`${JSON.stringify({ n, at: clock(), text: 'token ' } satisfies Token)}\n`);
        }
        controller.close();
        madeMs(performance.now() - startedAt);
      },
    });
    const own = await this.context.createNewResumableStream(streamId, () => tokens);
    // The process that requested it reads it, too.
    if (own) void consume(own, () => {});
  }

  /** @returns the milliseconds until all tokens were emitted */
  async finished(): Promise<number> {
    return (await this.made) ?? 0;
  }

  /** Reads every token with every reader. @returns the milliseconds from emit to reader, per token and reader */
  async read(streamId: string, readers: number, count: number): Promise<number[]> {
    const lags: number[] = [];
    const read = async (): Promise<void> => {
      const stream = await this.context.resumeExistingStream(streamId);
      if (!stream) throw new WrongAnswerError(`The stream ${streamId} is not there.`);
      const seen: number[] = [];
      await consume(stream, ({ n, at }) => {
        lags.push(clock() - at);
        seen.push(n);
      });
      expectNumbers('tokens that a reader got', seen, count);
    };
    await Promise.all(Array.from({ length: readers }, read));
    return lags;
  }

  async close(): Promise<void> {
    for (const client of this.clients) client.disconnect();
  }
}

async function consume(stream: ReadableStream<string>, take: (token: Token) => void): Promise<void> {
  let rest = '';
  for await (const chunk of stream) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) take(JSON.parse(line) as Token);
  }
}
