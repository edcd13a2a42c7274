import { anchorsOf, lineAt, linksOf, PAGES, read, readPage } from './pages.js';

/** Pages for users, except the list of guarantees, whose rows begin with these ids. */
const USER_PAGES = PAGES.filter(
  (path) => /^(README|SECURITY|docs\/.*|sample\/.*)\.md$/.test(path) && path !== 'docs/guarantees.md',
);
const rowIds = [...read('docs/guarantees.md').matchAll(/^\|([^|]*)\|/gm)].map(([, cell]) => cell).join('\n');
const areas = new Set([...rowIds.matchAll(/\b([A-Z]{3})-\d{2}\b/g)].map(([, area]) => area));
const ROW_ID = new RegExp(`\\b(?:${[...areas].join('|')})-\\d{2}\\b`, 'g');

describe('the pages for users', () => {
  it('DAY-20 knows the ids of the guarantees', () => {
    expect([...areas]).toEqual(expect.arrayContaining(['FIX', 'ORC', 'PRF', 'TRN']));
  });

  it.each(USER_PAGES)('DAY-20 shows no ids of guarantees in %s', (path) => {
    const text = read(path);

    expect([...text.matchAll(ROW_ID)].map(({ 0: id, index }) => `${path}:${lineAt(text, index)} ${id}`)).toEqual([]);
  });

  it('DAY-20 lists the terms first, and every other page of docs/', () => {
    const listed = linksOf(readPage('docs/README.md')).map(({ path }) => path);
    const pages = PAGES.filter((path) => path.startsWith('docs/') && path !== 'docs/README.md');

    expect(listed.find((path) => pages.includes(path ?? ''))).toBe('docs/terms.md');
    expect(pages.filter((path) => !listed.includes(path))).toEqual([]);
  });

  it('DAY-20 leaves the list of options to docs/options.md', () => {
    const page = readPage('README.md');
    const headers = [...page.prose.matchAll(/^(\|.+)\n\|[ :|-]+$/gm)].map(([, header = '']) => header);

    expect([...anchorsOf(page)].filter((anchor) => anchor.includes('option'))).toEqual([]);
    expect(headers.length).toBeGreaterThan(0);
    expect(headers.filter((header) => /\b(?:options?|defaults?)\b/i.test(header))).toEqual([]);
    // Rows and items that begin with a name in code, and blocks whose comments give defaults.
    expect(page.prose.match(/^(?:\| *|[*-] +)`[\w.]+`/gm)).toBeNull();
    expect(page.blocks.filter(({ text }) => /(?:\/\/|#).*\bdefaults?\b/i.test(text))).toEqual([]);
    expect(read('README.md')).toContain('](docs/options.md)');
  });
});
