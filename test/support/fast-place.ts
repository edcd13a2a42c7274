import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const MEMORY = '/dev/shm';
const ROOM_BYTES = 2 ** 30;

/** A folder for small files that SQLite syncs at every commit: in memory, if the machine has such a folder with enough space. */
export const FAST_PLACE = hasRoom(MEMORY) ? MEMORY : tmpdir();

/** The minimum free space. In containers this folder often has 64 MB, and macOS has none. */
function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}
