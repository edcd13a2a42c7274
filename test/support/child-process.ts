import { type ChildProcess, type ChildProcessByStdio, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Readable } from 'node:stream';

const children: ChildProcess[] = [];

/** Jest runs many test files in one process, and never emits `exit` on the `process` of a test file. */
afterAll(() => Promise.all(children.splice(0).map(kill)));

/**
 * Starts a Node program without the environment of this process. It is killed after the file's last test.
 * @param cwd its working directory; default: that of this process
 */
export function nodeProcess(
  program: string,
  env: Record<string, string>,
  cwd?: string,
): ChildProcessByStdio<null, Readable, Readable> {
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  });
  children.push(child);
  return child;
}

/** Runs a command in a shell, without the environment of this process. It is killed after the file's last test. */
export function shellProcess(command: string): ChildProcessByStdio<null, Readable, Readable> {
  // The program replaces the shell, so that signals reach it.
  const child = spawn('sh', ['-c', `exec env ${command}`], {
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  return child;
}

/**
 * Starts a Node program with a message channel and this JSON argument. Its output is shown if the running test fails. It is killed after
 * the file's last test.
 * @param execPath the Node that runs it; default: that of this process
 */
export function forkProgram(program: string, setup: unknown, execPath = process.execPath): ChildProcess {
  const child = fork(program, [JSON.stringify(setup)], {
    execPath,
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  child.stdout?.on('data', (data: Buffer) => process.stdout.write(data));
  child.stderr?.on('data', (data: Buffer) => process.stderr.write(data));
  children.push(child);
  return child;
}

/** Sends SIGKILL and waits until the process has ended. */
export async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
