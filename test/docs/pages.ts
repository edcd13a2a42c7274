import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

export const PROJECT = join(import.meta.dirname, '../..');

/** The pages that people read, by their paths in the repository. */
export const PAGES: readonly string[] = [
  'README.md',
  'CHANGELOG.md',
  'CODE_OF_CONDUCT.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...find('docs', /\.md$/),
  ...find('sample', /^sample\/[^/]+\/README\.md$/),
  ...find('bench', /^bench\/[^/]+\.md$/),
];

/** A fenced block. */
export interface Block {
  readonly page: string;
  /** The number of its first line of text, from 1. */
  readonly line: number;
  /** The first word after the fence, or ''. */
  readonly language: string;
  /** The rest of the fence line, or ''. */
  readonly shape: string;
  readonly text: string;
  /** The file name without its folder, if the line before the block names a file of `src`. The block is the whole file. */
  readonly file?: string;
}

export interface Page {
  readonly path: string;
  readonly blocks: readonly Block[];
  /** The text without blocks, whose lines are empty. */
  readonly prose: string;
}

const FENCE = /^( *)(`{3,})(\S*) *(.*)$/;

export function readPage(path: string): Page {
  const blocks: Block[] = [];
  const prose: string[] = [];
  let open:
    { fence: string; indent: string; line: number; language: string; shape: string; text: string[] } | undefined;
  for (const [at, line] of read(path).split('\n').entries()) {
    const [fenced, indent = '', fence = '', language = '', shape = ''] = FENCE.exec(line) ?? [];
    if (open && fence === open.fence) {
      const { line, language, shape, text } = open;
      const file = /`src\/([\w.-]+)`/.exec(prose[line - 4] ?? '')?.[1];
      blocks.push({ page: path, line, language, shape, text: text.join('\n'), ...(file && { file }) });
      open = undefined;
    } else if (open) {
      open.text.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line.trimStart());
    } else if (fenced !== undefined) {
      open = { fence, indent, line: at + 2, language, shape: shape.trim(), text: [] };
    }
    prose.push(open || fenced !== undefined ? '' : line);
  }
  if (open) throw new Error(`${path}:${open.line - 1} opens a block that is never closed.`);
  return { path, blocks, prose: prose.join('\n') };
}

/** Returns the anchors of a page, by GitHub's rule. */
export function anchorsOf({ prose }: Page): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of prose.matchAll(/^#{1,6} +(.*?) *#*$/gm)) {
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    const slug = text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let again = 1; anchors.has(anchor); again++) anchor = `${slug}-${again}`;
    anchors.add(anchor);
  }
  for (const [, id = ''] of prose.matchAll(/<[^>]+ (?:id|name)="([^"]+)"/g)) anchors.add(id);
  return anchors;
}

/** Returns the names in links such as `[text][name]` or `[name][]` that the page does not define. */
export function undefinedReferencesOf({ prose }: Page): readonly { readonly line: number; readonly name: string }[] {
  const text = withoutCode(prose);
  const defined = new Set([...text.matchAll(/^ {0,3}\[([^\]]+)\]: +\S/gm)].map(([, name = '']) => name.toLowerCase()));
  return [...text.matchAll(/\[([^[\]]+)\]\[([^[\]]*)\]/g)]
    .map(({ index, 1: shown = '', 2: name = '' }) => ({ line: lineAt(text, index), name: name || shown }))
    .filter(({ name }) => !defined.has(name.toLowerCase()));
}

export interface Link {
  readonly line: number;
  /** A path in the repository, or null for an external address. */
  readonly path: string | null;
  /** The anchor without the #, or ''. */
  readonly anchor: string;
}

export function linksOf({ path, prose }: Page): readonly Link[] {
  const text = withoutCode(prose);
  return [...text.matchAll(/\]\(([^()\s]+)(?: "[^"]*")?\)|<[^>]+ (?:href|src)="([^"]+)"|^\[[^\]]+\]: +(\S+)/gm)].map(
    (found) => {
      const target = found[1] ?? found[2] ?? found[3] ?? '';
      const [file = '', anchor = ''] = target.split('#');
      return {
        line: lineAt(text, found.index),
        path: /^[a-z]+:/.test(target) ? null : file === '' ? path : posix.normalize(posix.join(dirname(path), file)),
        anchor,
      };
    },
  );
}

function withoutCode(prose: string): string {
  return prose.replaceAll(/`[^`\n]*`/g, (code) => ' '.repeat(code.length));
}

export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

export function read(path: string): string {
  return readFileSync(join(PROJECT, path), 'utf8');
}

export function find(folder: string, name: RegExp): string[] {
  const files = readdirSync(join(PROJECT, folder), { recursive: true, encoding: 'utf8' });
  return files
    .map((file) => posix.join(folder, file))
    .filter((file) => name.test(file))
    .sort();
}
