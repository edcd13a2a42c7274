import { execFile } from 'node:child_process';
import { join } from 'node:path';

const PROGRAM = join(import.meta.dirname, 'fixtures/unawaited.mjs');
const LINE = /WARN.*\[TurnHandler\] (.+) of turn (#[0-9a-f]{12}) was rejected/g;
const CALLS = [
  'asTool().execute',
  'handle.command',
  'handle.execute',
  'handle.history',
  'turn.modules.flow.load',
  'turn.modules.task.create',
  'turn.modules.task.get',
  'turn.modules.task.setFlowState',
  'turn.modules.task.transition',
  'turn.modules.tools.get',
  'turn.step("b")',
  'turn.step("c")',
  'turn.step("d")',
  'turn.tools.use("lookup")',
  'turn.waitFor("late")',
  'turns.execute',
  'turns.lanes.drain',
  'turns.result',
];

const STOPS = ['cancel', 'revoke', 'timeout'];
/** After the time limit, the turns that the handler waits for continue: the next attempt would find them. */
const CONTINUED = ['handle.execute', 'turns.execute'];
const WRAPPED = ['cancel', 'reversed', 'revoke', 'timeout', 'deletion', 'failure', 'end'].map(
  (how) => `wrapped-${how}`,
);

describe('promises that a handler does not await', () => {
  let code: unknown;
  let outputs: Map<string, string>;

  beforeAll(async () => {
    ({ code, outputs } = await run([...STOPS, ...WRAPPED, 'in-sequence', 'observed']));
  }, 120_000);

  it.each(STOPS)('FIX-05 are logged with their turn when it is stopped by a %s', (how) => {
    const lines = [...outputOf(how).matchAll(LINE)];
    const rejected = how === 'timeout' ? CALLS.filter((call) => !CONTINUED.includes(call)) : CALLS;
    expect(lines.map(([, call]) => call).sort()).toEqual(rejected);
    expect(new Set(lines.map(([, , turn]) => turn)).size).toBe(1);
  });

  it('FIX-05 FIX-87 do not end the process, also through async functions of the handler, and add no listener', () => {
    expect(code).toBe(0);
    for (const how of [...STOPS, ...WRAPPED]) expect(outputOf(how)).toContain('listeners: 0');
  });

  it('FIX-87 reject while the handler awaits one, so that it cleans up after a cancel', () => {
    expect(outputOf('in-sequence')).toContain('cleaned up, late: TURN_STOPPED');
  });

  it('FIX-05 are not logged when the handler observes them', () => {
    expect([...outputOf('observed').matchAll(LINE)].map(([, call]) => call)).toEqual(['turn.waitFor("late")']);
  });

  it('FIX-05 end the process as ever outside of handlers', async () => {
    const outside = await run(['outside']);
    expect(outside.code).toBe(1);
    expect(outside.outputs.get('outside')).toContain('TurnFailedError');
  });

  function outputOf(how: string): string {
    // If the process has ended early, the last output says why.
    return outputs.get(how) ?? `No output of ${how}: ${[...outputs.values()].at(-1)}`;
  }
});

/** @returns the exit code of the process, and what it wrote about each way */
function run(ways: readonly string[]): Promise<{ code: unknown; outputs: Map<string, string> }> {
  const env = { PATH: process.env.PATH, NO_COLOR: '1', NODE_ENV: 'production' };
  return new Promise((resolve) => {
    // One pipe, so that errors stand where they were written.
    const command = `exec "$0" "$@" 2>&1`;
    execFile('sh', ['-c', command, process.execPath, PROGRAM, ...ways], { env, timeout: 110_000 }, (error, stdout) => {
      const parts = stdout.split(/^-- (.+)\n/m).slice(1);
      const outputs = new Map<string, string>();
      for (let at = 0; at < parts.length; at += 2) outputs.set(parts[at], parts[at + 1]);
      resolve({ code: error?.code ?? 0, outputs });
    });
  });
}
