import * as library from 'nestjs-agent-sessions';
import * as aiSdk from 'nestjs-agent-sessions/ai-sdk';
import * as ports from 'nestjs-agent-sessions/adapter';
import * as http from 'nestjs-agent-sessions/http';
import * as testing from 'nestjs-agent-sessions/testing';
import { SessionsError } from 'nestjs-agent-sessions';
import { statusOfCode } from '../../lib/common/error-status.js';
import { read } from './pages.js';

/** This error takes its code from a state module. */
const WITHOUT_A_CODE = 'StateStoresFailedError';

const thrown = Object.values<unknown>({ ...library, ...ports, ...http, ...aiSdk, ...testing })
  .filter((value): value is typeof SessionsError => (value as typeof SessionsError).prototype instanceof SessionsError)
  .filter(({ name }) => name !== WITHOUT_A_CODE);
const rows = [...read('docs/errors.md').matchAll(/^\| `(\w+)` +\| `(\w+)` +\| ([\d, ]+?) +\|/gm)];

describe('docs/errors.md', () => {
  it('DOC lists every error class with its code and status', () => {
    const shown = rows.map(([, code, name, statuses = '']) => ({ name, code, status: Number(statuses.split(',')[0]) }));
    const there = thrown.flatMap(({ name, codes }) =>
      codes.map((code) => ({ name, code, status: statusOfCode(code) })),
    );

    const byCode = (one: Row, other: Row): number =>
      `${one.code} ${one.name}`.localeCompare(`${other.code} ${other.name}`);
    expect(shown.sort(byCode)).toEqual(there.sort(byCode));
  });

  it('DOC lists every code that has a status', () => {
    const known = [...read('lib/common/error-status.ts').matchAll(/^ {2}([A-Z_]+): HttpStatus/gm)];

    expect(known.length).toBeGreaterThan(0);
    expect(known.map(([, code]) => code).filter((code) => !rows.some((row) => row[1] === code))).toEqual([]);
  });
});

interface Row {
  readonly name?: string | undefined;
  readonly code?: string | undefined;
}
