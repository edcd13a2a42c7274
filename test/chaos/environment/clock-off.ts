import { findFile, installPackage } from '../../support/services/find-program.js';

const LIBRARY = 'libfaketimeMT.so.1';
const DEBIAN = ['/usr/lib/*/faketime'];

/** Returns the environment of a process with a wrong wall clock and correct timers. */
export function clockOff(hours: number): Readonly<Record<string, string>> {
  return {
    LD_PRELOAD: findLibrary(),
    FAKETIME: `${hours > 0 ? '+' : ''}${hours}h`,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
}

function findLibrary(): string {
  const look = (): string | undefined => findFile(LIBRARY, DEBIAN);
  const found = look();
  if (found) return found;
  installPackage('libfaketime');
  const installed = look();
  if (!installed) throw new Error(`libfaketime was installed, but ${LIBRARY} was not found.`);
  return installed;
}
