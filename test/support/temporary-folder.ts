import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders: string[] = [];

/** A Jest worker runs many test files, and does not emit `exit` for them. */
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Creates a folder that is removed after the file's last test. */
export function temporaryFolder(place = tmpdir()): string {
  const folder = mkdtempSync(join(place, 'agent-sessions-'));
  folders.push(folder);
  return folder;
}
