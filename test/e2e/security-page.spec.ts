import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PROJECT = join(import.meta.dirname, '../..');
const PAGE = readFileSync(join(PROJECT, 'docs/security.md'), 'utf8');
const OURS_NOT = 'Your application';

/** The lines of its tables, but for their heads. */
const CLAIMS = PAGE.split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (Requirement|Topic|-)/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, what, , proof]) => ({ what, proof }));

const PROOFS = CLAIMS.flatMap(({ what, proof }) =>
  [...proof.matchAll(/\[([^\]]+)\]\(\.\.\/([\w./-]+)\)/g)].map(([, title, file]) => ({ what, title, file })),
);

it.each(CLAIMS)('NST-17 docs/security.md: $what: has a test, or is the application’s', ({ proof }) => {
  expect(proof === OURS_NOT || /^\[[^\]]+\]\(\.\.\//.test(proof)).toBe(true);
});

it.each(PROOFS)('NST-17 docs/security.md: $what: there is the test “$title”', ({ title, file }) => {
  expect(readFileSync(join(PROJECT, file), 'utf8').includes(title)).toBe(true);
});
