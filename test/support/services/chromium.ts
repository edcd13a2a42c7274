import { findProgram, installPackage } from './find-program.js';

/** A Chromium for tests of pages: the one that CHROMIUM names, else the machine's, else Debian's, installed where that is allowed. */
export function findChromium(): string {
  const look = (): string | undefined => findProgram('chromium') ?? findProgram('google-chrome');
  const found = process.env.CHROMIUM ?? look();
  if (found) return found;
  installPackage('chromium');
  const installed = look();
  if (!installed) throw new Error('chromium was installed, but is not to be found.');
  return installed;
}
