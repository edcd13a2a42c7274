import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Entry } from './history.js';

/**
 * Reads the entries of all processes of a run from a folder, in the order of time.
 * @throws Error naming the line that is not JSON; a last line without its end is left out: its process was killed meanwhile
 */
export function readHistory(folder: string): Entry[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  return files.flatMap((name) => readFile(join(folder, name))).sort((a, b) => a.at - b.at);
}

/** Returns true if a handler of the process has killed it. */
export function hasCrashed(folder: string, process: string): boolean {
  const last = readFile(join(folder, `${process}.jsonl`)).at(-1);
  return last?.type === 'note' && last.what === 'crash';
}

function readFile(file: string): Entry[] {
  // The part after the last line break is empty or incomplete.
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line, index) => {
    try {
      return JSON.parse(line) as Entry;
    } catch (error) {
      throw new Error(`${file}, line ${index + 1} is not an entry of a history: ${(error as Error).message}`, {
        cause: error,
      });
    }
  });
}
