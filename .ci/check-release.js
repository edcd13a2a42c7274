/** Refuses to publish while a placeholder is left. `node .ci/check-release.js [FOLDER]`; `npm publish` runs it. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '..'));
const PLACEHOLDERS = {
  REPOSITORY_URL: {
    value: 'the address of the repository, for example https://github.com/OWNER/NAME',
    files: ['package.json', 'README.md'],
  },
  SECURITY_CONTACT: { value: 'the address for confidential reports', files: ['SECURITY.md', 'CODE_OF_CONDUCT.md'] },
};

const left = Object.entries(PLACEHOLDERS).flatMap(([name, { value, files }]) =>
  files.flatMap((file) =>
    readFileSync(join(folder, file), 'utf8')
      .split('\n')
      .flatMap((line, at) =>
        line.includes(name) ? [`${file}:${at + 1} contains the placeholder ${name}. Replace it with ${value}.`] : [],
      ),
  ),
);
for (const line of left) console.error(line);
if (left.length > 0) console.error('The package cannot be published yet. See "Release" in CONTRIBUTING.md.');
process.exitCode = left.length > 0 ? 1 : 0;
