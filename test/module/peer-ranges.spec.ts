import { readFileSync } from 'node:fs';

interface LockedPackage {
  readonly name?: string;
  readonly version?: string;
}

describe('the peer dependencies', () => {
  it.each(['bullmq', 'typeorm'])('DAY-07 start at the versions of %s that the lanes of test/lowest test', (name) => {
    const { peerDependencies } = contents<{ peerDependencies: Record<string, string> }>('package.json');
    const { packages } = contents<{ packages: Record<string, LockedPackage> }>('test/lowest/package-lock.json');
    const tested = Object.values(packages).flatMap((each) => (each.name === name ? [`^${each.version}`] : []));

    expect(tested).toHaveLength(2);
    expect(tested.sort().join(' || ')).toBe(peerDependencies[name]);
  });
});

function contents<T>(file: string): T {
  return JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')) as T;
}
