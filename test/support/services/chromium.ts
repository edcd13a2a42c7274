import { findProgram, installPackage, waitForInstallations } from './find-program.js';

/** Returns a Chromium for tests of pages: that in CHROMIUM, else that of the machine, else the installed Debian package. */
export function findChromium(): string {
  waitForInstallations();
  const look = (): string | undefined => findProgram('chromium') ?? findProgram('google-chrome');
  const found = process.env.CHROMIUM ?? look();
  if (found) return found;
  installPackage('chromium');
  const installed = look();
  if (!installed) throw new Error('chromium was installed, but was not found.');
  return installed;
}
