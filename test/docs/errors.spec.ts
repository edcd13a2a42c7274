import * as library from 'nestjs-agent-sessions';
import * as aiSdk from 'nestjs-agent-sessions/ai-sdk';
import * as ports from 'nestjs-agent-sessions/adapter';
import * as http from 'nestjs-agent-sessions/http';
import { SessionsError } from 'nestjs-agent-sessions';
import { statusOfCode } from '../../lib/common/error-status.js';
import { find, read } from './pages.js';

/** This error takes its code from a state module. */
const WITHOUT_A_CODE = 'StateStoresFailedError';

const codes = new Map(
  find('lib', /\.errors?\.ts$/)
    .flatMap((file) => read(file).split(/^(?=export )/m))
    .map((text) => [/ class (\w+) /.exec(text)?.[1] ?? '', / readonly code = '(\w+)'/.exec(text)?.[1] ?? '']),
);
const thrown = Object.values<unknown>({ ...library, ...ports, ...http, ...aiSdk })
  .filter((value): value is typeof SessionsError => (value as typeof SessionsError).prototype instanceof SessionsError)
  .map(({ name }) => name)
  .filter((name) => name !== WITHOUT_A_CODE);
const rows = [...read('docs/errors.md').matchAll(/^\| `(\w+)` +\| `(\w+)` +\| ([\d, ]+?) +\|/gm)];

describe('docs/errors.md', () => {
  it('DOC lists every error class with its code and status', () => {
    const shown = rows.map(([, code, name, statuses = '']) => ({ name, code, status: Number(statuses.split(',')[0]) }));
    const there = thrown.map((name) => {
      const code = codes.get(name) ?? '';
      return { name, code, status: statusOfCode(code) };
    });

    const byName = (one: { name?: string }, other: { name?: string }): number =>
      `${one.name}`.localeCompare(`${other.name}`);
    expect(shown.sort(byName)).toEqual(there.sort(byName));
  });

  it('DOC lists every code that has a status', () => {
    const known = [...read('lib/common/error-status.ts').matchAll(/^ {2}([A-Z_]+): HttpStatus/gm)];

    expect(known.length).toBeGreaterThan(0);
    expect(known.map(([, code]) => code).filter((code) => !rows.some((row) => row[1] === code))).toEqual([]);
  });
});
