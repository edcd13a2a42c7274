// `node declarations.js [FOLDER]` adds `| undefined` to the optional properties of the declarations in dist, or FOLDER. The package is
// compiled without `exactOptionalPropertyTypes`, so it accepts `undefined` there. Applications with this option can only pass it if the
// declarations say so.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const OUTPUT = join(import.meta.dirname, 'dist');

/** Returns the optional properties and mapped types of a declaration file that do not accept `undefined`. */
export function exactOptionals(source) {
  const found = [];
  const visit = (node) => {
    const isOptional = ts.isPropertySignature(node) || ts.isPropertyDeclaration(node) || ts.isMappedTypeNode(node);
    // `-?` of a mapped type makes its properties required.
    const hasMark = node.questionToken && node.questionToken.kind !== ts.SyntaxKind.MinusToken;
    if (isOptional && hasMark && node.type && !acceptsUndefined(node.type)) found.push(node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function acceptsUndefined(type) {
  if (ts.isUnionTypeNode(type)) return type.types.some(acceptsUndefined);
  const { UndefinedKeyword, UnknownKeyword, AnyKeyword } = ts.SyntaxKind;
  return [UndefinedKeyword, UnknownKeyword, AnyKeyword].includes(type.kind);
}

function withUndefined(text, source) {
  const inserted = exactOptionals(source).flatMap(({ type }) => {
    const needsParentheses =
      ts.isFunctionTypeNode(type) || ts.isConstructorTypeNode(type) || ts.isConditionalTypeNode(type);
    const end = { at: type.end, text: ' | undefined' };
    return needsParentheses
      ? [
          { at: type.getStart(), text: '(' },
          { at: type.end, text: `)${end.text}` },
        ]
      : [end];
  });
  // From the end, so that the other positions stay valid.
  inserted.sort((one, other) => other.at - one.at);
  return inserted.reduce((result, { at, text }) => result.slice(0, at) + text + result.slice(at), text);
}

/** Returns the declaration files of the build, or below another folder. */
export function declarationFiles(folder = OUTPUT) {
  const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.d.ts'));
  return names.map((name) => join(folder, name));
}

/** Parses a declaration file. */
export function parse(file) {
  return ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
}

// The build runs this file.
if (process.argv[1] === import.meta.filename) {
  for (const file of declarationFiles(process.argv[2])) {
    const source = parse(file);
    const changed = withUndefined(source.text, source);
    if (changed !== source.text) writeFileSync(file, changed);
  }
}
