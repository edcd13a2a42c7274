import { readFileSync } from 'node:fs';

interface LockedPackage {
  readonly name?: string;
  readonly version?: string;
  readonly peerDependencies?: Record<string, string>;
}

interface PackageFile {
  readonly devDependencies: Record<string, string>;
  readonly peerDependencies: Record<string, string>;
}

interface LockFile {
  readonly packages: Record<string, LockedPackage>;
}

describe('the peer dependencies', () => {
  const { devDependencies, peerDependencies } = contents<PackageFile>('package.json');

  it.each(['bullmq', 'typeorm'])('DAY-07 start at the versions of %s that the lanes of test/lowest test', (name) => {
    const { packages } = contents<LockFile>('test/lowest/package-lock.json');
    const tested = Object.values(packages).flatMap((each) => (each.name === name ? [`^${each.version}`] : []));

    expect(tested).toHaveLength(2);
    expect(tested.sort().join(' || ')).toBe(peerDependencies[name]);
  });

  it('DAY-07 start at the version of @nestjs/bullmq that test/nest-11 tests', () => {
    const { packages } = contents<LockFile>('test/nest-11/package-lock.json');
    const tested = packages['node_modules/@nestjs/bullmq'].version;

    expect(peerDependencies['@nestjs/bullmq']).toBe(`^${tested} || ${devDependencies['@nestjs/bullmq']}`);
  });

  it('DAY-07 are the same in the lock file', () => {
    const { packages } = contents<LockFile>('package-lock.json');

    expect(packages[''].peerDependencies).toEqual(peerDependencies);
  });
});

function contents<T>(file: string): T {
  return JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')) as T;
}
