/**
 * The table of contents of the package: the comment of each entry file in `lib`, and the names below each of its section
 * comments (`// Turns`). The API reports and the API reference are divided by it.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import ts from 'typescript';

const root = resolve(import.meta.dirname, '..');
const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** The entry points of the package that have types: their key in `exports`, the name to import, and their files. */
export const ENTRY_POINTS = Object.entries(exports)
  .filter(([, { types }]) => types !== undefined)
  .map(([entry, { types }]) => ({
    entry,
    name: `${name}${entry.slice(1)}`,
    types,
    source: types.replace(/^\.\/dist\//, 'lib/').replace(/\.d\.ts$/, '.ts'),
  }));

/**
 * Reads the comment and the sections of an entry file, in their order. A file without section comments has one section
 * without a title.
 */
export function readEntry(source) {
  const text = readFileSync(join(root, source), 'utf8');
  const file = ts.createSourceFile(source, text, ts.ScriptTarget.Latest, true);
  const sections = [];
  for (const statement of file.statements) {
    const title = titleOf(statement, text);
    if (title !== undefined || sections.length === 0) sections.push({ title, names: [] });
    sections.at(-1).names.push(...namesOf(statement));
  }
  return { comment: commentOf(text), sections };
}

/** Returns the section comment before a statement, if any. */
function titleOf(statement, text) {
  const comments = ts.getLeadingCommentRanges(text, statement.getFullStart()) ?? [];
  const line = comments.findLast(({ kind }) => kind === ts.SyntaxKind.SingleLineCommentTrivia);
  return line && text.slice(line.pos + '//'.length, line.end).trim();
}

/** Returns the names that a statement exports. */
function namesOf(statement) {
  if (ts.isFunctionDeclaration(statement)) return [statement.name.text];
  if (!ts.isExportDeclaration(statement)) return [];
  const { exportClause } = statement;
  if (exportClause === undefined) {
    const { fileName } = statement.getSourceFile();
    throw new Error(`${fileName} must list the names that it exports. Found: ${statement.getText()}`);
  }
  if (ts.isNamespaceExport(exportClause)) return [exportClause.name.text];
  return exportClause.elements.map((element) => element.name.text);
}

/** Returns the text of the comment at the top of a file, without its tags. */
function commentOf(text) {
  const [, comment] = /^\/\*\*\n([\s\S]*?)\*\//.exec(text);
  const lines = comment.split('\n').map((line) => line.replace(/^ \* ?/, ''));
  return lines
    .filter((line) => !line.startsWith('@'))
    .join('\n')
    .trim();
}
