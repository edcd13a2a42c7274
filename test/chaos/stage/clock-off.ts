import { findFile, installPackage } from '../../support/services/find-program.js';

const LIBRARY = 'libfaketimeMT.so.1';
const DEBIAN = ['/usr/lib/*/faketime'];

/** The environment of a process whose wall clock is off; its timers keep their time. */
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
  if (!installed) throw new Error(`libfaketime was installed, but ${LIBRARY} is not to be found.`);
  return installed;
}
