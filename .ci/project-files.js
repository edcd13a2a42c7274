import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';

/** Maps each file of the work tree that git does not ignore to the hash of its content. */
export function projectFiles() {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' });
  const names = listed.split('\n').filter((name) => name !== '' && existsSync(name));
  return new Map(names.map((name) => [name, hashOf(readFileSync(name))]));
}

export function hashOf(content) {
  return createHash('sha1').update(content).digest('hex');
}
