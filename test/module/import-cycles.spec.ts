import { readdirSync, readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import ts from 'typescript';

const PACKAGE = join(import.meta.dirname, '../..');
const ROOTS = ['lib', 'sample', 'bench', 'test'];

/** Each file with those of the package that it imports, also for types only: ESLint's rule leaves these out. */
function importsOf(root: string): Map<string, string[]> {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.includes('node_modules'),
  );
  return new Map(
    files.map((file) => {
      const path = join(root, file);
      const { importedFiles } = ts.preProcessFile(readFileSync(path, 'utf8'), true, true);
      const relative = importedFiles.map(({ fileName }) => fileName).filter((name) => name.startsWith('.'));
      return [path, relative.map((name) => normalize(join(path, '..', name.replace(/\.js$/, '.ts'))))];
    }),
  );
}

/** The first way that leads back to where it began, if there is one. */
function findCycle(imports: ReadonlyMap<string, readonly string[]>): string[] | null {
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): string[] | null => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (done.has(file)) return null;
    for (const imported of imports.get(file) ?? []) {
      const cycle = visit(imported, [...way, file]);
      if (cycle) return cycle;
    }
    done.add(file);
    return null;
  };
  for (const file of imports.keys()) {
    const cycle = visit(file, []);
    if (cycle) return cycle;
  }
  return null;
}

it.each(ROOTS)('no file of %s imports one that leads back to it, not even for a type', (root) => {
  const imports = importsOf(join(PACKAGE, root));

  expect(imports.size).toBeGreaterThan(20);
  expect(findCycle(imports)).toBeNull();
});

it('a cycle would be found', () => {
  const imports = { a: ['b', 'c'], b: ['d'], c: ['d'], d: ['e', 'c'], e: [] };
  expect(findCycle(new Map(Object.entries(imports)))).toEqual(['d', 'c', 'd']);
});
