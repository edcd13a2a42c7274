import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { anchorsOf, linksOf, type Page, PAGES, PROJECT, readPage, undefinedReferencesOf } from './pages.js';

describe('the links of the pages', () => {
  it.each(PAGES)('DOC finds every link target of %s', (path) => {
    const page = readPage(path);

    expect(linksOf(page).flatMap((link) => problemOf(page, link))).toEqual([]);
    expect(undefinedReferencesOf(page)).toEqual([]);
  });
});

function problemOf(from: Page, { line, path, anchor }: ReturnType<typeof linksOf>[number]): string[] {
  if (path === null) return [];
  if (!existsSync(join(PROJECT, path))) return [`${from.path}:${line} There is no ${path}.`];
  if (anchor === '' || anchorsOf(readPage(path)).has(anchor)) return [];
  return [`${from.path}:${line} ${path} has no heading #${anchor}.`];
}
