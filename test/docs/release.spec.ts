import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../support/temporary-folder.js';
import { PAGES, PROJECT, read } from './pages.js';

const PLACEHOLDER = /\b(REPOSITORY_URL|SECURITY_CONTACT)\b/;
const CHECKED = ['package.json', 'README.md', 'SECURITY.md', 'CODE_OF_CONDUCT.md'];

describe('the check before npm publish', () => {
  it('DAY-12 names each placeholder with its place and what to write', () => {
    const folder = copyOf((text) => text);
    writeFileSync(join(folder, 'package.json'), '{\n  "bugs": { "url": "REPOSITORY_URL/issues" }\n}\n');
    writeFileSync(join(folder, 'SECURITY.md'), 'Send a report to `SECURITY_CONTACT`.\n');

    const { status, stderr } = check(folder);

    expect(status).toBe(1);
    expect(stderr).toContain('package.json:2 contains the placeholder REPOSITORY_URL. Replace it with the address of');
    expect(stderr).toContain('SECURITY.md:1 contains the placeholder SECURITY_CONTACT. Replace it with the address');
  });

  it('DAY-12 passes when every placeholder is replaced', () => {
    const folder = copyOf((text) =>
      text.replaceAll('REPOSITORY_URL', 'https://example.com/a').replaceAll('SECURITY_CONTACT', 'a@example.com'),
    );

    expect(check(folder)).toMatchObject({ status: 0, stderr: '' });
  });

  it('DAY-12 reads every page that contains a placeholder, and runs before npm publish', () => {
    const pages = PAGES.filter((page) => page !== 'CONTRIBUTING.md' && PLACEHOLDER.test(read(page)));
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };

    expect(pages.filter((page) => !CHECKED.includes(page))).toEqual([]);
    expect(scripts.prepublishOnly).toBe('node .ci/check-release.js');
  });
});

describe('a release', () => {
  it('DAY-12 is published with its provenance', () => {
    const { publishConfig } = JSON.parse(read('package.json')) as { publishConfig: object };

    expect(publishConfig).toEqual({ access: 'public', provenance: true });
  });

  it('DAY-12 has a checklist that writes an SBOM of the packages that users install', () => {
    const release =
      read('CONTRIBUTING.md')
        .split('\n## ')
        .find((section) => section.startsWith('Release\n')) ?? '';
    const steps = [...release.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));

    expect(steps).toEqual(steps.map((_, index) => index + 1));
    expect(steps.length).toBeGreaterThan(5);
    for (const command of [
      'node .ci/check-release.js',
      '.ci/run',
      'npm pack --dry-run',
      'npm sbom --prefix build/sbom --package-lock-only --sbom-format cyclonedx',
      'npm publish',
      'npm audit signatures',
    ]) {
      expect(release).toContain(command);
    }
    expect(release.indexOf('npm sbom')).toBeLessThan(release.indexOf('`npm publish` in a CI job'));
  });
});

/** Copies the checked files to a new folder. */
function copyOf(change: (text: string) => string): string {
  const folder = temporaryFolder();
  for (const file of CHECKED) writeFileSync(join(folder, file), change(read(file)));
  return folder;
}

function check(folder: string): { status: number | null; stderr: string } {
  return spawnSync(process.execPath, [join(PROJECT, '.ci/check-release.js'), folder], { encoding: 'utf8' });
}
