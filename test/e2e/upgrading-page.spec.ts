import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PROJECT = join(import.meta.dirname, '../..');
const PROGRAM = 'sample/04-model-agent/upgrade';

it('BOT-23 BOT-24 the program of docs/upgrading-a-live-agent.md runs unchanged, and prints the documented output', () => {
  const page = readFileSync(join(PROJECT, 'docs/upgrading-a-live-agent.md'), 'utf8');

  expect(page).toContain(`\`\`\`ts\n${readFileSync(join(PROJECT, `${PROGRAM}.ts`), 'utf8')}\`\`\`\n`);
  const printed = execFileSync(process.execPath, [join(PROJECT, `build/${PROGRAM}.js`)], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(page).toContain(`\`\`\`\n${printed}\`\`\`\n`);
});
