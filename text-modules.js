// SQL and Lua are files of their own under lib/. The build and jest make a JavaScript module of each, which exports its text:
// `import CREATE_TABLES from './tables.sql.js'`. Nothing is read at run time.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const SOURCE = join(import.meta.dirname, 'lib');
const OUTPUT = join(import.meta.dirname, 'dist');

/** The text of one file as its module exports it. */
export function textOf(file) {
  const text = readFileSync(file, 'utf8');
  return file.endsWith('.lua') ? composeLua(file, text) : text;
}

const INCLUDE = /^-- @include (.+)\n/m;
const COMMENT_LINE = /^\s*--.*\n/gm;
// A definition begins in the first column with `local` and ends before the next one.
const DEFINITION = /^local (?:function )?([\w, ]+?)(?: =|\().*\n(?:(?!local ).*\n)*/gm;

/**
 * One Lua script without its comments. `-- @include lane, contents` names files of the folder include/, which may include
 * others. The script gets, of all their definitions, those that its text up to the next `@include` uses: Redis makes every
 * definition anew in each call, so a script that often returns early includes what follows later.
 */
function composeLua(file, text) {
  const shebang = /^#!.*\n/.exec(text)?.[0];
  if (!shebang) throw new Error(`${file} must begin with #!lua and its flags.`);
  const folder = join(dirname(file), 'include');
  const [first, ...sections] = text.slice(shebang.length).split(INCLUDE);
  const parts = [shebang, `-- nestjs-agent-sessions: ${basename(file, '.lua')}\n`, withoutComments(first)];
  const made = new Set();
  for (let i = 0; i < sections.length; i += 2) {
    const body = withoutComments(sections[i + 1]);
    const available = filesOf(sections[i], folder).flatMap(definitionsOf);
    const needed = usedBy(
      body,
      available.filter(({ text }) => !made.has(text)),
    );
    for (const { text } of needed) made.add(text);
    parts.push(...needed.map(({ text }) => text), body);
  }
  return parts.join('').trimEnd();
}

/** The named files and those that they include, each after what it needs. */
function filesOf(names, folder, found = []) {
  for (const name of names.split(', ')) {
    const file = join(folder, `${name}.lua`);
    const [, included] = INCLUDE.exec(readFileSync(file, 'utf8')) ?? [];
    if (included) filesOf(included, folder, found);
    if (!found.includes(file)) found.push(file);
  }
  return found;
}

/** What an included file defines, without its comments. */
export function definitionsOf(file) {
  const text = withoutComments(readFileSync(file, 'utf8'));
  return [...text.matchAll(DEFINITION)].map(([text, names]) => ({ text, names: names.split(', ') }));
}

function usedBy(body, definitions) {
  return definitions.reduceRight((used, definition) => {
    const name = new RegExp(`\\b(?:${definition.names.join('|')})\\b`);
    const isUsed = [body, ...used.map(({ text }) => text)].some((text) => name.test(withoutStrings(text)));
    return isUsed ? [definition, ...used] : used;
  }, []);
}

function withoutComments(text) {
  return text
    .replace(COMMENT_LINE, '')
    .replace(/\n{2,}/g, '\n')
    .replace(/^\n/, '');
}

function withoutStrings(text) {
  return text.replace(/'[^'\n]*'/g, "''");
}

function moduleOf(file) {
  return `export default ${JSON.stringify(textOf(file))};\n`;
}

/** The transform for jest. */
export default {
  process: (_, file) => ({ code: moduleOf(file) }),
  // A script changes with what it includes, and with this file.
  getCacheKey: (_, file) =>
    createHash('sha1')
      .update(moduleOf(file))
      .update(readFileSync(import.meta.filename))
      .digest('hex'),
};

/** The module that exports every Redis script by its name in camel case: `accept-turn.lua` is `acceptTurn`. */
const SCRIPTS = join(SOURCE, 'store/redis/scripts');
const LIST = join(SCRIPTS, 'texts.ts');

function listOfScripts() {
  const exported = readdirSync(SCRIPTS)
    .filter((name) => name.endsWith('.lua'))
    .sort()
    .map((name) => [name, basename(name, '.lua').replace(/-(\w)/g, (_, letter) => letter.toUpperCase())])
    .map(([name, camelCase]) => `export { default as ${camelCase} } from './${name}.js';\n`);
  return `// Generated from the files of this folder: npm run build.\n${exported.join('')}`;
}

/** Whether the list names the scripts that exist. */
export function areTextsListed() {
  return existsSync(LIST) && readFileSync(LIST, 'utf8') === listOfScripts();
}

// The build runs this file, with `--list` before it compiles TypeScript.
if (process.argv[1] === import.meta.filename) {
  if (process.argv.includes('--list')) {
    if (!areTextsListed()) writeFileSync(LIST, listOfScripts());
  } else {
    for (const name of readdirSync(SOURCE, { recursive: true })) {
      if (!/\.(lua|sql)$/.test(name) || basename(dirname(name)) === 'include') continue;
      const target = join(OUTPUT, `${name}.js`);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, moduleOf(join(SOURCE, name)));
    }
  }
}
