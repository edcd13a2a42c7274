import { readdirSync, readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import ts from 'typescript';

const PACKAGE = join(import.meta.dirname, '../..');
const ROOTS = ['lib', 'sample', 'bench', 'test'];

/** Maps each file to the package files that it imports, including type-only imports. */
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

/** Returns the first import cycle, if any. */
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

it.each(ROOTS)('has no import cycles in %s, including type imports', (root) => {
  const imports = importsOf(join(PACKAGE, root));

  expect(imports.size).toBeGreaterThan(20);
  expect(findCycle(imports)).toBeNull();
});

it('finds a cycle', () => {
  const imports = { a: ['b', 'c'], b: ['d'], c: ['d'], d: ['e', 'c'], e: [] };
  expect(findCycle(new Map(Object.entries(imports)))).toEqual(['d', 'c', 'd']);
});
