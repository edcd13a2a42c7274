import { mkdtempSync, rmSync } from 'node:fs';
import { type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CanActivate, Controller, type ExecutionContext, Module, Post, Res } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { streamText } from 'ai';
import { Intent, Orchestrator, SessionsModule, type TurnContext, type TurnOutcome } from 'nestjs-agent-sessions';
import { streamReply } from 'nestjs-agent-sessions/ai-sdk';
import { scriptedModel } from 'nestjs-agent-sessions/testing';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { type Benchmark, type Comparison, type Outcome } from './benchmark.js';
import { interleave } from './rounds.js';
import { type Sizes } from './sizes.js';
import { quantile } from './statistics.js';
import { type Stores } from './stores.js';
import { WrongAnswerError } from './wrong-answer.error.js';

const AT_MOST_MS = 20;
const QUANTILES = { p50: 0.5, p95: 0.95 } as const;
type Measure = keyof typeof QUANTILES;

export const ais01: Benchmark = {
  id: 'AIS-01',
  title: 'First words of an answer over HTTP: the chat controller, and a handler with the bare model',
  stores: ['sqlite'],
  run,
};

const model = scriptedModel(() => 'one two three');

class Guard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    Object.assign(context.switchToHttp().getRequest<object>(), { user: { id: 'ann' } });
    return true;
  }
}

/** A version of the AI SDK. */
interface Sdk {
  readonly name: string;
  readonly streamText: typeof streamText;
  readonly reply: (turn: TurnContext) => Promise<TurnOutcome>;
}

const AI_6: Sdk = { name: 'ai 6', streamText, reply: (turn) => streamReply(turn, { model }) };

/** Loads version 7 from its folder, where `npm run setup:ai-7` has installed it. */
async function loadAi7(): Promise<Sdk> {
  const file = new URL('../../test/ai-7/packages.mjs', import.meta.url);
  const sdk = (await import(file.href)) as Pick<Sdk, 'streamText'>;
  const entry = import.meta.resolve('nestjs-agent-sessions/ai-sdk');
  const { streamReplyWith } = (await import(new URL('stream-reply.js', entry).href)) as {
    readonly streamReplyWith: (
      version: object,
      turn: TurnContext,
      options: { readonly model: typeof model },
    ) => Promise<TurnOutcome>;
  };
  return { name: 'ai 7', streamText: sdk.streamText, reply: (turn) => streamReplyWith(sdk, turn, { model }) };
}

async function run(_: Stores, sizes: Sizes): Promise<Outcome> {
  const comparisons: Comparison[] = [];
  for (const sdk of [AI_6, await loadAi7()]) comparisons.push(...(await compare(sdk, sizes)));
  return { comparisons };
}

async function compare(sdk: Sdk, { rounds, answers }: Sizes): Promise<Comparison[]> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  const app = await start(join(folder, 'chat.db'), sdk);
  const { port } = app.getHttpServer().address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  let sent = 0;
  const ask = (path: string) => firstWords(`${url}/${path}`, `chat-${(sent += 1)}`);
  try {
    const { bare, chat } = await interleave(
      { rounds, slices: 1 },
      {
        bare: { run: () => measure(answers, () => ask('bare')) },
        chat: { run: () => measure(answers, () => ask('chat')) },
      },
    );
    return (Object.keys(QUANTILES) as Measure[]).flatMap((of): Comparison[] => {
      const added = chat[of].map((ms, round) => ms - bare[of][round]);
      const ours = { name: 'ours', rounds: added };
      const allowed = { name: 'allowed', rounds: added.map(() => AT_MOST_MS) };
      return [
        {
          what: `what the module adds to ${sdk.name}, ${of}`,
          unit: 'ms',
          base: allowed,
          measured: ours,
          bound: { atMost: 1 },
        },
        {
          what: `time to the first words with ${sdk.name}, ${of}`,
          unit: 'ms',
          base: { name: 'the bare model', rounds: bare[of] },
          measured: { name: 'ours', rounds: chat[of] },
        },
      ];
    });
  } finally {
    await app.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function start(database: string, sdk: Sdk): Promise<NestExpressApplication> {
  const adapter = typeormAdapter({ dataSource: { type: 'better-sqlite3', database } });

  @Orchestrator({ name: 'assistant', version: '1' })
  class Assistant {
    @Intent()
    chat(turn: TurnContext) {
      return sdk.reply(turn);
    }
  }

  @Controller('bare')
  class BareController {
    @Post()
    answer(@Res() response: ServerResponse): void {
      void sdk.streamText({ model, prompt: 'Count.' }).pipeUIMessageStreamToResponse(response);
    }
  }

  @Module({
    imports: [
      SessionsModule.forRoot({ adapter, controllers: { chat: { guards: [new Guard()], orchestrators: [Assistant] } } }),
      SessionsModule.forFeature([Assistant]),
    ],
    controllers: [BareController],
    providers: [Assistant],
  })
  class AppModule {}

  const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: false });
  await app.listen(0, '127.0.0.1');
  return app;
}

async function measure(count: number, ask: () => Promise<Answer>): Promise<Record<Measure, number>> {
  const times: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const startedAt = performance.now();
    const { whole } = await ask();
    times.push(performance.now() - startedAt);
    // The next answer begins when this one is complete.
    await whole();
  }
  return { p50: quantile(times, QUANTILES.p50), p95: quantile(times, QUANTILES.p95) };
}

/** An answer of which the first words have arrived. */
interface Answer {
  /** Reads the rest. @throws WrongAnswerError */
  readonly whole: () => Promise<void>;
}

async function firstWords(url: string, id: string): Promise<Answer> {
  const message = { id: `${id}-message`, role: 'user', parts: [{ type: 'text', text: 'Count.' }] };
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id, messages: [message], trigger: 'submit-message' }),
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const readUntil = async (words: string): Promise<void> => {
    while (!text.includes(words)) {
      const { done, value } = await reader.read();
      if (done) throw new WrongAnswerError(`The answer ended before ${words}: ${text}`);
      text += value;
    }
  };
  await readUntil('one');
  const whole = async (): Promise<void> => {
    await readUntil('"type":"finish"');
    if (!/one.*two.*three/s.test(text)) throw new WrongAnswerError(`The answer is incomplete: ${text}`);
    await reader.cancel();
  };
  return { whole };
}
