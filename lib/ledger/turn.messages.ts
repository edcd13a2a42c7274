/** The messages of the errors in turn.errors.ts, and of `StateResetError`. */
export const turnMessages = {
  notFound: (turnId: string): string =>
    `Turn not found: ${turnId}. Check the id. Old settled turns may have been deleted.`,

  fenced: (sessionId: string, turnId: string): string =>
    `The attempt is over: turn ${turnId} of session ${sessionId} has ended, or another worker has claimed it. Nothing was written. ` +
    'The handler can return: its result is not used.',

  settled: (turnId: string, status: string): string =>
    `Turn ${turnId} is already ${status}. Send a new message instead.`,

  failed: (turnId: string): string =>
    `Turn ${turnId} failed. Its state, messages and index are unchanged. Send the message again; the log has the cause.`,

  cancelled: (turnId: string): string => `Turn ${turnId} was cancelled. Send a new message to continue.`,

  superseded: (turnId: string, supersededBy: string): string =>
    `Turn ${turnId} was superseded by turn ${supersededBy}. Wait for that turn instead.`,

  waitTimeout: (turnId: string, timeoutMs: number): string =>
    `Turn ${turnId} has not settled within ${timeoutMs} ms. It continues; query it by its id later.`,

  timeout: (turnId: string, timeoutMs: number): string =>
    `The attempt of turn ${turnId} exceeded turns.timeoutMs (${timeoutMs} ms) and was stopped. Increase the option, ` +
    'or use smaller steps.',

  signalTimeout: (turnId: string, signal: string): string =>
    `Turn ${turnId} waited for signal ${JSON.stringify(signal)}, which did not arrive in time. Pass onTimeout to ` +
    'waitFor to continue without it.',

  shuttingDown: (): string => 'This process is stopping and does not accept new turns. Retry later.',

  continuedElsewhere: (turnId: string): string =>
    `This process is stopping. Turn ${turnId} continues in another process. Query it by its id later.`,

  reentry: (sessionId: string): string =>
    `Deadlock: the handler waits for a turn of session ${sessionId}, which waits, directly or through other turns, for the session of the handler. ` +
    'Use submit() without waiting, or another session.',

  tooManyStreams: (limit: number): string =>
    `Too many open streams. Allowed: ${limit} (maxStreamsPerPrincipal). Close one, then reconnect.`,

  tooManyWaitingParents: (limit: number): string =>
    `${limit} handlers of this process already wait for other turns, the maximum of turns.maxWaitingParents. ` +
    'Increase the option, or add processes.',

  idempotencyConflict: (turnId: string): string =>
    `The idempotency key was already used for turn ${turnId} with a different input. Use a new key for a new message.`,

  busy: (sessionId: string, turnId: string, since: string): string =>
    `Session ${sessionId} is busy with turn ${turnId} since ${since}. Retry later, or use another policy than whenBusy: 'reject'.`,

  laneFull: (sessionId: string, limit: number): string =>
    `Session ${sessionId} already has ${limit} queued turns, the maximum. Retry later.`,

  laneDraining: (sessionId: string): string =>
    `Session ${sessionId} does not accept turns while its lane is draining. Retry later, or resume the lane.`,

  stateReset: (namespaces: readonly string[]): string =>
    `State was reset since the turn began: ${namespaces.join(', ')}. Nothing was written. ` +
    'Settle the turn without these writes.',
};
