/** An attempt that was lost with its worker. */
interface Loss {
  /** The number of the attempt. */
  readonly attempt: number;
  /** The id as logged. */
  readonly turnId: string;
  readonly orchestrator: string;
  readonly worker: string;
  readonly lost: number;
  readonly lostSinceStep: number;
  readonly maxLost: number;
}

/** The messages about attempts: of `TurnStoppedError`, failure-log.ts, attempt-events.ts and handed-promises.ts. */
export const attemptMessages = {
  stopped: (why: keyof typeof REASONS): string => `The attempt is over: ${REASONS[why]}`,

  lostAndFailed: (loss: Loss): string => `${lossOf(loss)} The turn failed as WORKER_LOST.`,

  /** @param after how long after its first attempt, or nothing */
  lostAndTaken: (loss: Loss, after: string): string => `${lossOf(loss)} This process takes the turn over${after}.`,

  lostAndQueued: (loss: Loss, dueAt: string | undefined): string =>
    `${lossOf(loss)} The turn runs again after ${dueAt}, when no other repeatedly lost turn runs in its process.`,

  /** @param turnId as logged */
  eventsNotCounted: (turnId: string): string =>
    `Could not read the earlier events of turn ${turnId}; turns.events.maxBytes limits those of ` +
    'this attempt only.',

  /** @param turnId as logged */
  tooManyEvents: (turnId: string, maxBytes: number): string =>
    `The events of turn ${turnId} have reached turns.events.maxBytes (${maxBytes}). ` +
    'The rest is not shown live; an answer appears when it is stored.',

  /**
   * @param turnId as logged
   * @param place what runs, as in `in intent answer`, or nothing
   */
  stillRuns: (turnId: string, place: string, seconds: number): string =>
    `The handler of turn ${turnId} still runs${place} ${seconds} s after its attempt was stopped, and its result is not used. Pass ` +
    'turn.signal to what it waits for, as in fetch(url, { signal: turn.signal }).',

  /** @param turnId as logged */
  unusedStep: (step: string, turnId: string): string =>
    `Turn ${turnId} did not call step ${JSON.stringify(step)} again, which an earlier attempt had completed. If another step ` +
    'replaced it, its effect happened twice: a step needs the same name in each attempt, without random values and times.',

  /** @param turnId as logged */
  fewerSteps: (step: string, turnId: string): string =>
    `Turn ${turnId} called step ${JSON.stringify(step)} fewer times than an earlier attempt, so its results may belong to other ` +
    `calls. Give each call a key: turn.step(${JSON.stringify(step)}, work, { key: item.id }).`,

  httpException: (): string =>
    'The caller does not receive an HTTP exception of a handler. To tell the user, return reply(...). To fail without retries, ' +
    'throw a PermanentTurnError.',

  /**
   * @param call the call whose promise was rejected, for example `turn.step("price")`
   * @param turnId as logged
   */
  notAwaited: (call: string, turnId: string): string =>
    `${call} of turn ${turnId} was rejected, and its handler had not awaited it when the attempt ended.`,
};

const REASONS = {
  cancelled: 'the turn was cancelled. The handler can return: its result is not used.',
  shutdown:
    'this process is stopping, and another worker continues the turn. ' +
    'The handler can return: its result is not used.',
  lost:
    'another worker has the turn, or the store did not answer in time. ' +
    'The handler can return: its result is not used.',
  'awaiting-signal':
    'the turn waits for a signal, and a later attempt continues it. ' +
    'Work that still runs can end: its result is not used.',
  failed: 'it has failed. Work that still runs can end: its result is not used.',
  ended: 'its handler has returned. Await every call of the turn before the handler returns.',
};

function lossOf({ attempt, turnId, orchestrator, worker, lost, lostSinceStep, maxLost }: Loss): string {
  return (
    `Attempt ${attempt} of turn ${turnId} of ${orchestrator} was lost with ${worker}, ` +
    `which did not renew its lease; lost attempts: ${lost}, since the last stored step: ${lostSinceStep} of ${maxLost}.`
  );
}
