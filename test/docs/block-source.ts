import { join } from 'node:path';
import ts from 'typescript';
import { type Block, PROJECT } from './pages.js';

/** The origin of a name: its module, and whether it is only a type. */
export interface Origin {
  readonly from: string;
  readonly isType: boolean;
  /** True if the name is the reader's or from an earlier block, false if it is from a package. */
  readonly isYours: boolean;
}

/**
 * A block as a module. The omitted imports are on one line before its text, so that line numbers can be mapped back.
 */
export class BlockSource {
  /** The path of a virtual file. */
  readonly file: string;
  readonly text: string;
  /** The names that later blocks of the page may use. */
  readonly declared: ReadonlyMap<string, Origin>;

  constructor(
    readonly block: Block,
    originOf: (name: string) => Origin | undefined,
  ) {
    const typed = block.language !== 'js';
    this.file = join(PROJECT, `${block.page}.${block.line}.${block.language}`);
    const [before, after] = wrapping(block);
    const source = ts.createSourceFile(this.file, `${before}\n${block.text}\n${after}`, ts.ScriptTarget.ES2022);
    const { declared, imported, exported } = topLevelNames(source);
    const imports = [...identifiers(source)]
      .filter((name) => !declared.has(name) && !imported.has(name))
      .map((name) => [name, block.file ? undefined : originOf(name)] as const)
      .filter(([, origin]) => origin && (typed || !origin.isType) && (imported.size === 0 || origin.isYours))
      .map(([name, origin]) => `import { ${origin?.isType ? 'type ' : ''}${name} } from '${origin?.from}';`);
    const exports = [...declared]
      .filter(([name]) => !exported.has(name))
      .map(([name, isType]) => (isType ? `type ${name}` : name));
    this.text = `${imports.join(' ')} ${before}\n${block.text}\n${after}\nexport { ${exports.join(', ')} };\n`;
    const from = specifierOf(this.file);
    this.declared = new Map([...declared].map(([name, isType]) => [name, { from, isType, isYours: true }]));
  }
}

/** Returns the specifier with which other blocks import a virtual file. */
export function specifierOf(file: string): string {
  return `block:${file}`;
}

/** Returns the code before and after a block of this shape that turns it into a module. */
function wrapping({ language, shape, text }: Block): [string, string] {
  if (shape === '' || language === 'js') return ['', ''];
  if (shape === 'class') {
    const own = [...text.matchAll(/\b(?:private|protected|public|readonly) (?:readonly )?(\w+)[:?]/g)].map(
      ([, name]) => `'${name}'`,
    );
    return [`interface Yours extends Omit<Your, ${own.join(' | ') || 'never'}> {} class Yours {`, '}'];
  }
  const value = text.trimStart().startsWith('{');
  return [`({ shown: ${value ? '' : '{'}`, `${value ? '' : '}'} }) satisfies { shown: Shown<${shape}> };`];
}

interface TopLevelNames {
  /** Names, each with whether it is only a type. */
  readonly declared: Map<string, boolean>;
  readonly imported: Set<string>;
  readonly exported: Set<string>;
}

function topLevelNames(source: ts.SourceFile): TopLevelNames {
  const names: TopLevelNames = { declared: new Map(), imported: new Set(), exported: new Set() };
  for (const statement of source.statements) {
    if (ts.isImportDeclaration(statement)) {
      for (const name of identifiers(statement)) names.imported.add(name);
      continue;
    }
    const isType = ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement);
    for (const name of declaredNames(statement)) {
      names.declared.set(name, isType && names.declared.get(name) !== false);
      const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined;
      if (modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) names.exported.add(name);
    }
  }
  return names;
}

function declaredNames(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.flatMap(({ name }) => boundNames(name));
  const named =
    ts.isClassDeclaration(statement) ||
    ts.isFunctionDeclaration(statement) ||
    ts.isInterfaceDeclaration(statement) ||
    ts.isTypeAliasDeclaration(statement) ||
    ts.isEnumDeclaration(statement);
  return named && statement.name ? [statement.name.text] : [];
}

function boundNames(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text];
  return name.elements.flatMap((element) => (ts.isBindingElement(element) ? boundNames(element.name) : []));
}

/** Returns all identifiers of a tree, also properties and locals: an unused import does no harm. */
function identifiers(node: ts.Node): Set<string> {
  const names = new Set<string>();
  const visit = (part: ts.Node): void => {
    if (ts.isIdentifier(part)) names.add(part.text);
    ts.forEachChild(part, visit);
  };
  visit(node);
  return names;
}
