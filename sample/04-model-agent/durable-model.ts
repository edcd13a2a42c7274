import { type LanguageModel, simulateReadableStream, wrapLanguageModel } from 'ai';
import { type TurnContext } from 'nestjs-agent-sessions';
import { type Model } from './models.js';

type Stream = Awaited<ReturnType<Model['doStream']>>['stream'];
type Part = Stream extends ReadableStream<infer P> ? P : never;
/** The parts that are stored: those that are JSON and that this sample reads. */
type StoredPart = Exclude<Part, { type: 'error' | 'file' | 'raw' | 'response-metadata' }>;

/**
 * Wraps a model for `streamText` so that its answers are stored steps of a turn. An answer is emitted word by word while it arrives, and
 * stored before its tools run. The next attempt receives the stored answer. Tool calls therefore keep their ids, by which `turn.tools.use`
 * finds earlier results.
 * @param key identifies the conversation with the model; required if several run at the same time
 */
export function durable(model: Model, turn: Pick<TurnContext<never>, 'step' | 'emit'>, key = 'main'): LanguageModel {
  let asked = 0;
  return wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v3',
      wrapStream: async ({ doStream }) => {
        let isAsked = false;
        const ask = async (): Promise<StoredPart[]> => {
          isAsked = true;
          return readAll((await doStream()).stream, show);
        };
        // The answers of one conversation have their own order, independent of other steps.
        const parts = await turn.step('ask the model', ask, { key: `${key} ${(asked += 1)}` });
        // Emit the words of an earlier attempt again, because clients have discarded them.
        if (!isAsked) parts.forEach(show);
        return { stream: simulateReadableStream({ chunks: parts, initialDelayInMs: null, chunkDelayInMs: null }) };
      },
    },
  });

  function show(part: Part): void {
    if (part.type === 'text-delta') void turn.emit({ type: 'delta', data: { text: part.delta } });
  }
}

/** @throws the provider's error, also if an answer breaks off */
async function readAll(stream: Stream, show: (part: Part) => void): Promise<StoredPart[]> {
  const parts: StoredPart[] = [];
  for await (const part of stream) {
    if (part.type === 'error') throw part.error;
    show(part);
    const last = parts.at(-1);
    // Combine words to events, up to the size limit of an event.
    if (part.type === 'text-delta' && last?.type === 'text-delta' && last.id === part.id && last.delta.length < 8192) {
      last.delta += part.delta;
    } else if (part.type !== 'response-metadata' && part.type !== 'raw' && part.type !== 'file') {
      parts.push({ ...part });
    }
  }
  return parts;
}
