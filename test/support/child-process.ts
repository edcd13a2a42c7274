import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { type Readable } from 'node:stream';

type Child = ChildProcessByStdio<null, Readable, Readable>;

const children: Child[] = [];

/** A worker of jest runs many test files; `process.on('exit')` of a test file is never called. */
afterAll(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** A program of Node with no other environment, which is killed after the file's last test if it still runs. */
export function nodeProcess(program: string, env: Record<string, string>): Child {
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  return child;
}
