import { getMetadataStorage } from 'class-validator';
import {
  memoryAdapter,
  SessionsModuleOptions,
  type SessionsModuleStatics,
  OrchestrationOptions,
  StateOptions,
  SweepOptions,
  TurnsOptions,
} from 'nestjs-agent-sessions';
import { SessionsControllersOptions } from 'nestjs-agent-sessions/http';
import { LoggingOptions } from '../../lib/module/logging.options.js';
import { resolveOptions } from '../../lib/module/sessions.settings.js';
import { BackoffOptions, RetryOptions, TurnEventsOptions } from '../../lib/turn/turn.options.js';
import { readPage } from './pages.js';

type Tree = { readonly [name: string]: unknown };

// The compiler checks that this list is complete.
const STATICS: Record<keyof SessionsModuleStatics, true> = { isGlobal: true, role: true, controllers: true };

const CLASSES: readonly (readonly [string, new () => object])[] = [
  ['', SessionsModuleOptions],
  ['sweep', SweepOptions],
  ['orchestration', OrchestrationOptions],
  ['logging', LoggingOptions],
  ['turns', TurnsOptions],
  ['turns.retry', RetryOptions],
  ['turns.retry.backoff', BackoffOptions],
  ['turns.events', TurnEventsOptions],
  ['state', StateOptions],
  ['controllers', SessionsControllersOptions],
];

describe('the options in docs/options.md', () => {
  const options = evaluate(readPage('docs/options.md').blocks.find(({ text }) => text.includes('role:'))?.text ?? '');

  it.each(CLASSES)('DOC lists every option of %s', (path, type) => {
    const shown = path.split('.').reduce<unknown>((tree, name) => (name === '' ? tree : (tree as Tree)[name]), options);
    const statics = path === '' ? Object.keys(STATICS) : [];

    expect(Object.keys(shown as Tree).sort()).toEqual([...optionsOf(type), ...statics].sort());
  });

  it('DOC gives the defaults', () => {
    const given = Object.entries(options).filter(([name, value]) => !(name in STATICS) && typeof value !== 'function');

    expect(settingsOf(Object.fromEntries(given))).toEqual(settingsOf({ adapter: memoryAdapter() }));
    expect(options).toMatchObject({ isGlobal: false, role: 'both' });
  });
});

/** Returns the options that the block passes to forRoot. */
function evaluate(block: string): Tree {
  let options: Tree = {};
  // oxlint-disable-next-line typescript/no-implied-eval -- the page is ours
  const run = new Function('SessionsModule', 'memoryAdapter', block) as (...names: unknown[]) => void;
  run({ forRoot: (given: Tree) => (options = given) }, memoryAdapter);
  return options;
}

/** Compares as JSON, because functions of two calls are never equal. */
function settingsOf(options: SessionsModuleOptions): unknown {
  return JSON.parse(JSON.stringify({ ...resolveOptions(options, {}), adapter: null }));
}

function optionsOf(type: new () => object): string[] {
  const checks = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
  return [...new Set(checks.map(({ propertyName }) => propertyName))];
}
