// Checks every Lua script as Redis gets it, with luacheck (Debian's package lua-check): undefined names and unused values. Not
// whether a name hides one of an outer function (43): included definitions stand behind some of the script's own names.
// Then the source files: their form, and that some script uses every definition of include/.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { definitionsOf, areTextsListed, textOf } from '../text-modules.js';

const SCRIPTS = 'lib/store/redis/scripts';
const INCLUDES = join(SCRIPTS, 'include');
const COMPOSED = 'build/lua';

const luaFiles = (folder) => readdirSync(folder).filter((name) => name.endsWith('.lua'));
const luacheck = (...args) => execFileSync('luacheck', ['--quiet', '--std', 'lua51', ...args], { stdio: 'inherit' });

rmSync(COMPOSED, { recursive: true, force: true });
mkdirSync(COMPOSED, { recursive: true });
for (const name of luaFiles(SCRIPTS)) writeFileSync(join(COMPOSED, name), `${textOf(join(SCRIPTS, name))}\n`);
luacheck('--read-globals', 'redis', 'cjson', 'KEYS', 'ARGV', '--no-max-line-length', '--ignore', '43', '--', COMPOSED);
luacheck('--only', '6', '--max-line-length', '120', '--', SCRIPTS);

const scripts = luaFiles(COMPOSED)
  .map((name) => readFileSync(join(COMPOSED, name), 'utf8'))
  .join('\n');
const unused = luaFiles(INCLUDES)
  .flatMap((name) => definitionsOf(join(INCLUDES, name)).map((definition) => ({ name, ...definition })))
  .filter(({ text }) => !scripts.includes(text));
for (const { name, names } of unused) console.error(`${join(INCLUDES, name)}: no script uses ${names.join(', ')}`);
if (!areTextsListed()) console.error(`${SCRIPTS}/texts.ts does not list the scripts of its folder. Run: npm run build`);
if (unused.length > 0 || !areTextsListed()) process.exit(1);
