import { read } from './pages.js';

interface LockedPackage {
  readonly engines?: { readonly node?: string };
  readonly dependencies?: Record<string, string>;
  readonly devDependencies?: Record<string, string>;
}

/** Major and minor version of each Node that the tests run on. */
const TESTED = [
  [20, 19],
  [22, 23],
  [24, 21],
  [26, 12],
] as const;

describe('the packages of this project', () => {
  it.each(TESTED)('DAY-09 accept Node %i.%i, so that npm prints no warning about them', (major, minor) => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, LockedPackage> };
    const { dependencies, devDependencies } = packages[''];
    const names = Object.keys({ ...dependencies, ...devDependencies });

    expect(names.length).toBeGreaterThan(50);
    expect(names.filter((name) => !accepts(packages[`node_modules/${name}`].engines?.node, major, minor))).toEqual([]);
  });
});

describe('the lanes of other versions', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const lanes = Object.keys(scripts).filter((name) => /^test:(lowest|nest|node|previous)-/.test(name));

  it('DAY-07 have names for each supported version of Node', () => {
    const others = TESTED.map(([major]) => `test:node-${major}`).filter((name) => name !== 'test:node-20');

    expect(lanes).toEqual(expect.arrayContaining(others));
  });

  it.each(lanes)('DAY-07 runs %s in .ci/run', (lane) => {
    expect(read('.ci/run')).toMatch(new RegExp(`^lane ${lane.replace('test:', '')}$`, 'm'));
  });

  it('DAY-07 runs all other steps on Node 20 in ci.yml', () => {
    expect(read('.github/workflows/ci.yml').match(/node-version: .+/g)).toEqual(['node-version: 20']);
  });
});

/** Returns whether a range such as `^20.19.0 || >=22.12.0` contains a version. */
function accepts(range: string | undefined, major: number, minor: number): boolean {
  if (range === undefined) return true;
  return range.split('||').some((part) => {
    const [, operator, from, least = '0'] = /^\s*(\^|>=)?\s*(\d+)(?:\.(\d+))?/.exec(part) ?? [];
    return Number(from) === major ? minor >= Number(least) : operator === '>=' && major > Number(from);
  });
}
