import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const MEMORY = '/dev/shm';
const ROOM_BYTES = 2 ** 30;

/** For small files that SQLite waits for at every commit: in memory, where the machine has a folder there with room in it. */
export const FAST_PLACE = hasRoom(MEMORY) ? MEMORY : tmpdir();

/** A container's often has 64 MB, and a Mac has none. */
function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}
