import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type DefaultTheme } from 'vitepress';
import { REPOSITORY_URL } from './repository.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Folders whose Markdown files are not pages. */
const SOURCES = ['lib', 'test', 'coverage', '.ci', '.github'];

/** The documentation as a site: docs/, the READMEs of samples and benchmarks, and the API reference in build/reference. */
export default defineConfig({
  title: 'nestjs-agent-sessions',
  description: 'Durable sessions and ordered turns for chat agents on NestJS.',
  srcDir: '..',
  outDir: '../build/site',
  cacheDir: '../build/site-cache',
  srcExclude: [...SOURCES.map((folder) => `${folder}/**`), 'build/!(reference)/**'],
  rewrites: (page) => page.replace(/(^|\/)README\.md$/, '$1index.md').replace(/^build\//, ''),
  markdown: {
    config: (md) => {
      md.core.ruler.push('links', ({ tokens, env }) => {
        const { realPath, path } = env as { realPath?: string; path: string };
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const href = token.type === 'link_open' && token.attrGet('href');
          if (href) token.attrSet('href', siteLink(href, dirname(realPath ?? path)));
        }
      });
    },
  },
  themeConfig: {
    search: {
      provider: 'local',
      options: {
        // Index the description of a symbol but not its members, so that the index loads quickly.
        _render: (source, env, md) => {
          const isSymbol = env.path.includes('/build/reference/');
          return md.render(isSymbol ? source.split('\n## ', 1)[0] : source, env);
        },
      },
    },
    outline: [2, 3],
    nav: [
      { text: 'Guide', link: '/docs/' },
      { text: 'API', link: '/reference/' },
      { text: 'Changelog', link: '/CHANGELOG' },
    ],
    sidebar: { '/reference/': apiSidebar(), '/': guideSidebar() },
    socialLinks: [{ icon: 'github', link: REPOSITORY_URL }],
  },
});

/** Returns the address of a link's target: a page of the site, or a file in the repository. */
function siteLink(href: string, folder: string): string {
  const [path, hash = ''] = href.split(/(?=#)/);
  if (!path || /^[a-z]+:|^\//.test(path)) return href;
  const file = relative(ROOT, join(folder, path));
  const isPage = !SOURCES.includes(file.split('/')[0]);
  if (isPage && path.endsWith('.md')) return `${path.replace(/(^|\/)README\.md$/, '$1index.md')}${hash}`;
  if (isPage && existsSync(join(ROOT, file, 'README.md'))) return `${path.replace(/\/?$/, '/index.md')}${hash}`;
  return existsSync(join(ROOT, file)) ? `${REPOSITORY_URL}/blob/main/${file}${hash}` : href;
}

/** The headings of docs/README.md with the pages in their tables. */
function guideSidebar(): DefaultTheme.SidebarItem[] {
  const page = readFileSync(join(ROOT, 'docs/README.md'), 'utf8');
  return page.split(/^## /m).flatMap((section) => {
    const [text] = section.split('\n', 1);
    const links = [...section.matchAll(/^\| +\[([^\]]+)\]\(([^)#]+\.md)[^)]*\)/gm)];
    const items = links.map(([, title, link]) => ({
      text: title,
      link: join('/docs', link.replace(/README\.md$/, '')),
    }));
    return items.length > 0 ? [{ text, collapsed: false, items }] : [];
  });
}

/** The entry points of the package with their symbols. */
function apiSidebar(): DefaultTheme.SidebarItem[] {
  return JSON.parse(
    readFileSync(join(ROOT, 'build/reference/typedoc-sidebar.json'), 'utf8'),
  ) as DefaultTheme.SidebarItem[];
}
