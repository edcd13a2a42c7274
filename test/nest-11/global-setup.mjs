import { cpSync } from 'node:fs';
import { join } from 'node:path';
import startServices from '../../build/test/support/services/global-setup.js';

const HERE = import.meta.dirname;
const PROJECT = join(HERE, '../..');

/** Installs the built package beside Nest 11, and places the samples where they find both. */
export default async function setUp() {
  const installed = join(HERE, 'node_modules/nestjs-agent-sessions');
  for (const part of ['package.json', 'dist']) cpSync(join(PROJECT, part), join(installed, part), { recursive: true });
  for (const part of ['sample', 'test']) {
    cpSync(join(PROJECT, 'build', part), join(HERE, 'build', part), { recursive: true });
  }
  await startServices();
}
