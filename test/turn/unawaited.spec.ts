import { execFile } from 'node:child_process';
import { join } from 'node:path';

const PROGRAM = join(import.meta.dirname, 'fixtures/unawaited.mjs');
const LINE = /WARN.*\[TurnHandler\] (.+) of turn (#[0-9a-f]{12}) was rejected/g;
const CALLS = [
  'asTool().execute',
  'handle.execute',
  'turn.step("b")',
  'turn.step("c")',
  'turn.step("d")',
  'turn.tools.use("lookup")',
  'turn.waitFor("late")',
  'turns.execute',
  'turns.result',
];

describe('promises that a handler does not await', () => {
  it.each(['cancel', 'revoke', 'timeout'])(
    'FIX-05 are logged with their turn and do not end the process when it is stopped by a %s',
    async (how) => {
      const { code, out } = await run(how);
      expect(out).toContain('listeners: 0');
      expect(code).toBe(0);
      const lines = [...out.matchAll(LINE)];
      expect(lines.map(([, call]) => call).sort()).toEqual(CALLS);
      expect(new Set(lines.map(([, , turn]) => turn)).size).toBe(1);
    },
  );

  it.each(['cancel', 'reversed', 'revoke', 'timeout', 'deletion', 'failure', 'end'])(
    'FIX-87 do not end the process through async functions of the handler when it is stopped by a %s',
    async (how) => {
      const { code, out } = await run(`wrapped-${how}`);
      expect(out).toContain('listeners: 0');
      expect(code).toBe(0);
    },
  );

  it('FIX-87 reject while the handler awaits one, so that it cleans up after a cancel', async () => {
    const { code, out } = await run('in-sequence');
    expect(code).toBe(0);
    expect(out).toContain('cleaned up, late: TURN_STOPPED');
  });

  it('FIX-05 are not logged when the handler observes them', async () => {
    const { code, out } = await run('observed');
    expect(code).toBe(0);
    expect([...out.matchAll(LINE)].map(([, call]) => call)).toEqual(['turn.waitFor("late")']);
  });

  it('FIX-05 end the process as ever outside of handlers', async () => {
    const { code, out } = await run('outside');
    expect(code).toBe(1);
    expect(out).toContain('TurnFailedError');
  });
});

/** @returns its exit code, and what it wrote */
function run(how: string): Promise<{ code: unknown; out: string }> {
  const env = { PATH: process.env.PATH, NO_COLOR: '1', NODE_ENV: 'production' };
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, how], { env, timeout: 50_000 }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, out: stdout + stderr }),
    );
  });
}
