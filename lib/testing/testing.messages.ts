import { type Turn } from '../ledger/turn.js';

/** The messages of the errors in testing.errors.ts, and of `SessionsTestingModule` and `TestClock`. */
export const testingMessages = {
  /** @param head the turn that holds the lane: the turn with this id, or an earlier one */
  unsettled: (turnId: string, head: Turn, now: number): string =>
    `Turn ${turnId} has not settled: ${turnId === head.id ? 'it' : `turn ${head.id} before it`} ${why(head, now)}`,

  scriptOver: (orchestrator: string, scripted: number, input: string): string =>
    `The script of orchestrator ${orchestrator} has ${scripted === 1 ? '1 answer' : `${scripted} answers`}, ` +
    `and another turn came with ${JSON.stringify(input)}. Add an answer to scriptedOrchestrator().`,

  adapterWithoutClock: (): string =>
    'The `adapter` option was set without the `clock` option. Set both: ' +
    'SessionsTestingModule.create({ clock, adapter: memoryAdapter({ clock: clock.now }) }).',

  noHttp: (): string =>
    'The HTTP application is disabled. Enable it with SessionsTestingModule.create({ http: true }), or with a ' +
    'function: http: (module) => module.createNestApplication().useGlobalPipes(...).',

  wrongDuration: (received: unknown): string =>
    "must be milliseconds, 0 or more, or a duration such as '30s', '2h' or '1d'. Received: " +
    `${typeof received === 'string' ? JSON.stringify(received) : String(received)}.`,
};

function why(head: Turn, now: number): string {
  if (head.waitingFor) {
    const signal = JSON.stringify(head.waitingFor.signal);
    return `waits for the signal ${signal}. Send it: await app.get(TurnService).signal('${head.id}', ${signal}).`;
  }
  const ms = Date.parse(head.dueAt ?? '') - now;
  const failed = head.error ? `failed (${head.error.name}: ${head.error.message}) and ` : '';
  return `${failed}resumes in ${ms} ms on the test's clock. Move the clock: await app.clock.advance(${ms}).`;
}
