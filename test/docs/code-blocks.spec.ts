import { type Block, PAGES, readPage } from './pages.js';
import { CompiledBlocks } from './compiled-blocks.js';

const blocks = PAGES.flatMap((path) => readPage(path).blocks);

describe('the code blocks of the pages', () => {
  let compiled: CompiledBlocks;

  beforeAll(() => {
    compiled = new CompiledBlocks(blocks.filter(({ language }) => language === 'ts' || language === 'js'));
  }, 120_000);

  it.each(pagesWith('ts', 'js'))('DOC what %s shows compiles', (page) => {
    expect(compiled.problemsOf(page)).toEqual([]);
  });
});

function pagesWith(...languages: string[]): string[] {
  return [...new Set(blocks.filter(({ language }: Block) => languages.includes(language)).map(({ page }) => page))];
}
