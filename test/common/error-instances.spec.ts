import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as root from 'nestjs-agent-sessions';
import {
  HandlerError,
  InvalidInputError,
  LaneFullError,
  PermanentTurnError,
  SessionsError,
  TurnNotFoundError,
} from 'nestjs-agent-sessions';
import * as adapter from 'nestjs-agent-sessions/adapter';
import * as aiSdk from 'nestjs-agent-sessions/ai-sdk';
import { ResponseError } from 'nestjs-agent-sessions/client';
import * as http from 'nestjs-agent-sessions/http';
import * as testing from 'nestjs-agent-sessions/testing';
import { temporaryFolder } from '../support/stores.js';

const PROJECT = process.cwd();

/** The entry points with error classes. */
const ENTRIES = ['index.js', 'adapter.js', 'ai-sdk/index.js', 'client/index.js', 'http/index.js', 'testing/index.js'];

class OwnError extends SessionsError {
  readonly code = 'OWN';
}

class SmallLaneError extends LaneFullError {}

describe('isInstance of the error classes', () => {
  it('NST-15 accepts errors of the class and of its subclasses, and no others', () => {
    const full = new LaneFullError('s1', 100);
    const small = new SmallLaneError('s1', 1);
    const own = new OwnError('Mine.');

    expect([full, small, own].map((error) => LaneFullError.isInstance(error))).toEqual([true, true, false]);
    expect([full, small, own].map((error) => SmallLaneError.isInstance(error))).toEqual([false, true, false]);
    expect([full, small, own].map((error) => OwnError.isInstance(error))).toEqual([false, false, true]);
    expect([full, small, own].map((error) => SessionsError.isInstance(error))).toEqual([true, true, true]);
    expect(InvalidInputError.isInstance(full)).toBe(false);
  });

  it.each([
    ['an error with the same code', Object.assign(new Error('Full.'), { code: 'LANE_FULL' })],
    ['an error with the same name', Object.assign(new Error('Full.'), { name: 'LaneFullError' })],
    ['a string', 'LANE_FULL'],
    ['null', null],
    ['undefined', undefined],
    ['an object whose getters throw', new Proxy({}, { get: () => fail() })],
  ])('NST-15 rejects %s', (_, error) => {
    expect(LaneFullError.isInstance(error)).toBe(false);
    expect(SessionsError.isInstance(error)).toBe(false);
    expect(PermanentTurnError.isInstance(error)).toBe(false);
    expect(ResponseError.isInstance(error)).toBe(false);
  });

  it('NST-15 narrows the type of the error', () => {
    const described = (error: unknown): string => {
      if (LaneFullError.isInstance(error)) return `limit ${error.limit}`;
      if (TurnNotFoundError.isInstance(error)) {
        // @ts-expect-error this error has no limit
        void error.limit;
        return error.turnId;
      }
      if (HandlerError.isInstance(error)) {
        // @ts-expect-error this class has no such code
        void (error.code === 'LANE_FULL');
        return error.code;
      }
      if (PermanentTurnError.isInstance(error)) return error.message;
      if (SessionsError.isInstance(error)) {
        // @ts-expect-error not every error of the package has a limit
        void error.limit;
        return error.code;
      }
      return 'another error';
    };
    const errors = [
      new LaneFullError('s1', 7),
      new TurnNotFoundError('t1'),
      new HandlerError('NO_INTENT', 'None.'),
      new OwnError('Mine.'),
      new PermanentTurnError('Never.'),
      new Error('Broken.'),
    ];

    expect(errors.map(described)).toEqual(['limit 7', 't1', 'NO_INTENT', 'OWN', 'Never.', 'another error']);
  });

  it('NST-15 identifies each class by its first code', () => {
    const classes = new Set(
      [root, adapter, aiSdk, http, testing].flatMap((entry) => Object.values<unknown>(entry)).filter(isErrorClass),
    );
    const first = [...classes].map(({ codes }) => codes[0]);

    expect(first).not.toContain(undefined);
    expect(new Set(first).size).toBe(classes.size);
    expect(classes.size).toBeGreaterThan(40);
  });

  it('NST-15 accepts errors of another copy of the package', async () => {
    const copy = join(temporaryFolder(), 'copy');
    mkdirSync(copy, { recursive: true });
    cpSync(join(PROJECT, 'dist'), join(copy, 'dist'), { recursive: true });
    symlinkSync(join(PROJECT, 'node_modules'), join(copy, 'node_modules'));
    writeFileSync(join(copy, 'package.json'), '{ "type": "module" }');
    const program = join(copy, 'compare.mjs');
    writeFileSync(program, comparing(join(PROJECT, 'dist'), join(copy, 'dist')));

    const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 50_000 });
    const { classes, sameClasses, wrong, thrown } = JSON.parse(stdout) as Record<string, unknown>;

    // With SessionsError and ResponseError.
    expect(classes).toBeGreaterThan(43);
    expect(sameClasses).toBe(0);
    expect(wrong).toEqual([]);
    expect(thrown).toEqual([
      { isInstance: true, instanceOf: false },
      { isInstance: true, instanceOf: false },
      { isInstance: true, instanceOf: false },
    ]);
  });
});

/** Compares each class of a copy with an object of each class of another copy. */
function comparing(one: string, other: string): string {
  const load = (folder: string): string =>
    `{ ${ENTRIES.map((entry) => `...await import('${folder}/${entry}')`).join(', ')} }`;
  return `
    import 'reflect-metadata';
    const [one, other] = [${load(one)}, ${load(other)}];
    const names = Object.keys(one).filter((name) => one[name]?.prototype instanceof Error);
    const wrong = [];
    for (const of of names) {
      const error = Object.create(one[of].prototype);
      for (const name of names) {
        const expected = error instanceof one[name];
        if (other[name].isInstance(error) !== expected) wrong.push([of, name, expected]);
      }
    }
    const thrown = [
      [new one.LaneFullError('s1', 1), other.LaneFullError],
      [new one.InvalidInputError('a', 'b', 'UNKNOWN_STEP'), other.InvalidInputError],
      [new one.PermanentTurnError('No.'), other.PermanentTurnError],
    ].map(([error, type]) => ({ isInstance: type.isInstance(error), instanceOf: error instanceof type }));
    const sameClasses = names.filter((name) => one[name] === other[name]).length;
    console.log(JSON.stringify({ classes: names.length, sameClasses, wrong, thrown }));
  `;
}

function isErrorClass(value: unknown): value is typeof SessionsError {
  return typeof value === 'function' && value.prototype instanceof SessionsError;
}

function fail(): never {
  throw new Error('The getter fails.');
}
