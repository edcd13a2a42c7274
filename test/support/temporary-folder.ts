import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders: string[] = [];

/** A worker of jest runs many test files, and ends without telling them. */
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder that is removed after the file's last test. */
export function temporaryFolder(place = tmpdir()): string {
  const folder = mkdtempSync(join(place, 'agent-sessions-'));
  folders.push(folder);
  return folder;
}
