import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasCrashed, readHistory } from './read-history.js';

const line = (process: string, at: number): string =>
  `${JSON.stringify({ at, process, type: 'note', what: 'outage' })}\n`;

describe('readHistory', () => {
  let folder: string;
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);

  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'history-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  it('TRN-15 reads the entries of all processes in the order of time', () => {
    write('a.jsonl', line('a', 1) + line('a', 3));
    write('b.jsonl', line('b', 2));
    write('b.log', 'something else\n');
    write('c.jsonl', '');
    expect(readHistory(folder).map(({ at, process }) => [at, process])).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'a'],
    ]);
  });

  it('TRN-15 skips the incomplete line of a killed process', () => {
    write('a.jsonl', line('a', 1) + line('a', 2).slice(0, -9));
    expect(readHistory(folder)).toEqual([expect.objectContaining({ at: 1 })]);
  });

  it('TRN-15 rejects an invalid line within a history', () => {
    write('a.jsonl', `${line('a', 1)}{"at":\n${line('a', 2)}`);
    expect(() => readHistory(folder)).toThrow(/a\.jsonl, line 2 is not an entry/);
  });

  it('FIX-06 detects that a handler has killed its process', () => {
    const crash = `${JSON.stringify({ at: 2, process: 'a', type: 'note', what: 'crash' })}\n`;
    write('killed.jsonl', line('a', 1) + crash);
    write('other.jsonl', crash + line('a', 3));
    write('none.jsonl', '');
    expect(['killed', 'other', 'none'].map((name) => hasCrashed(folder, name))).toEqual([true, false, false]);
  });
});
