import { onAbort } from '../common/on-abort.js';
import { TooLargeError } from '../common/sessions.error.js';
import { incompleteAnswer } from './ai-sdk.errors.js';
import { AnswerRecording } from './answer-recording.js';
import { type Deferred } from './deferred.js';
import { type ModelOutputPart } from './language-model.js';
import { type ReportUsage } from './model-calls.js';

/** The time in which a provider sends the usage after an error. */
const USAGE_MS = 1000;

/** The state of a live answer, shared by its stream and its step. */
export interface LiveAnswer {
  /** Settled by the stream: with the complete answer, or the error of an answer that failed. */
  readonly parts: Deferred<readonly ModelOutputPart[]>;
  /** Settles when the step has stored the answer, or has given it up. */
  readonly stored: Promise<unknown>;
  /** Aborted when the request must stop. */
  readonly signal: AbortSignal;
  /** Aborts the signal when the reader of the stream has left. */
  readonly reader: AbortController;
  /** Called with the usage of the answer, also if the answer fails. */
  readonly onUsage: ReportUsage;
  /** The maximum size of the stored answer as JSON. */
  readonly maxBytes: number;
}

/**
 * Passes an answer on while recording it. Each part is read when the reader asks for it, up to the first part that must
 * be held. Then the rest is read at once, and the held parts follow when the answer is stored.
 *
 * An answer that cannot be stored because of its size fails at once: some never end (AIS-34).
 *
 * An answer that fails ends with an `error` part and then breaks, so that it cannot be mistaken for a complete one.
 */
export function recordStream(
  source: ReadableStream<ModelOutputPart>,
  { parts, stored, signal, reader, onUsage, maxBytes }: LiveAnswer,
): ReadableStream<ModelOutputPart> {
  const provider = source.getReader();
  const recording = new AnswerRecording();

  const stop = (): void => {
    parts.reject(signal.reason);
    // Ends a read that is pending.
    provider.cancel(signal.reason).catch(() => undefined);
  };
  // A combined signal stays in memory while it has listeners, and with it the answer.
  const stopWaiting = onAbort(signal, stop);
  parts.promise.then(stopWaiting, stopWaiting);

  /** @returns `undefined` at the end */
  const read = async (): Promise<ModelOutputPart | undefined> => {
    const { value: part } = await provider.read();
    if (part?.type === 'finish') onUsage(part.usage);
    signal.throwIfAborted();
    if (part?.type !== 'error') return part;
    await readUsage(provider, onUsage);
    throw part.error;
  };

  return new ReadableStream<ModelOutputPart>(
    {
      async pull(controller) {
        try {
          for (let part = await read(); part; part = await read()) {
            const isLive = recording.add(part);
            if (recording.leastBytes > maxBytes) {
              throw new TooLargeError('The answer of the model', recording.leastBytes, maxBytes);
            }
            if (isLive) return controller.enqueue(part);
          }
          if (!recording.isComplete) throw incompleteAnswer();
          parts.resolve(recording.parts);
        } catch (error) {
          parts.reject(error);
          // Ends the request of an answer that is too large.
          provider.cancel(error).catch(() => undefined);
        }
        try {
          await stored;
          for (const part of recording.held) controller.enqueue(part);
          controller.close();
        } catch (error) {
          if (!signal.aborted) controller.enqueue({ type: 'error', error });
          controller.error(error);
        }
      },
      async cancel(reason) {
        reader.abort(reason);
        await stored.catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

/** Reads the end of an answer that has failed: many providers send the usage there (AIS-36). Then closes the stream. */
async function readUsage(provider: ReadableStreamDefaultReader<ModelOutputPart>, onUsage: ReportUsage): Promise<void> {
  const close = (): void => void provider.cancel().catch(() => undefined);
  const limit = setTimeout(close, USAGE_MS);
  try {
    for (let next = await provider.read(); !next.done; next = await provider.read()) {
      if (next.value.type !== 'finish') continue;
      onUsage(next.value.usage);
      return;
    }
  } catch {
    // The error before it is the one that counts.
  } finally {
    clearTimeout(limit);
    close();
  }
}
