import { type LanguageModel, simulateReadableStream, wrapLanguageModel } from 'ai';
import { type TurnContext } from 'nestjs-agent-sessions';
import { type Model } from './models.js';

type Stream = Awaited<ReturnType<Model['doStream']>>['stream'];
type Part = Stream extends ReadableStream<infer P> ? P : never;

/**
 * A model for `streamText` whose answers are stored steps of a turn: shown word by word while they come, stored before their
 * tools run, and given again to the next attempt instead of being asked for. So a call of a tool keeps its id over attempts,
 * by which `turn.tools.use` knows what was done.
 * @param key identifies the conversation with the model: give one to each of several that run at the same time
 */
export function durable(model: Model, turn: Pick<TurnContext<never>, 'step' | 'emit'>, key = 'main'): LanguageModel {
  let asked = 0;
  return wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v3',
      wrapStream: async ({ doStream }) => {
        let isAsked = false;
        const ask = async (): Promise<Part[]> => {
          isAsked = true;
          return readAll((await doStream()).stream, show);
        };
        // The answers of one conversation follow one another, whatever runs beside it.
        const parts = await turn.step('ask the model', ask, { key: `${key} ${(asked += 1)}` });
        // The words of an earlier attempt are shown again: clients have dropped them.
        if (!isAsked) parts.forEach(show);
        return { stream: simulateReadableStream({ chunks: parts, initialDelayInMs: null, chunkDelayInMs: null }) };
      },
    },
  });

  function show(part: Part): void {
    if (part.type === 'text-delta') void turn.emit({ type: 'delta', data: { text: part.delta } });
  }
}

/** @throws what the provider reports: a broken answer is none */
async function readAll(stream: Stream, show: (part: Part) => void): Promise<Part[]> {
  const parts: Part[] = [];
  for await (const part of stream) {
    if (part.type === 'error') throw part.error;
    show(part);
    const last = parts.at(-1);
    // Words are stored together, in pieces that an event can carry.
    if (part.type === 'text-delta' && last?.type === 'text-delta' && last.id === part.id && last.delta.length < 8192) {
      last.delta += part.delta;
    } else if (part.type !== 'response-metadata' && part.type !== 'raw') {
      // Those two are not plain JSON, and nobody asks for them.
      parts.push({ ...part });
    }
  }
  return parts;
}
