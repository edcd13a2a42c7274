import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { defineOrchestrator, type TurnContext } from 'nestjs-agent-sessions';
import { startApplication } from '../support/running-application.js';

const LIB = join(process.cwd(), 'lib');
const OPERATIONS = ['describe', 'reset', 'compact'];
/** The files of the control plane, in process and over HTTP. */
const CONTROL_PLANE = [join(LIB, 'state/session-state.service.ts'), join(LIB, 'http/')];

it('STA-28 gives turns no means to describe, reset or compact state', async () => {
  let seen: string[] = [];
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      look: (turn: TurnContext) => {
        seen = [...methodsOf(turn, 'turn', 2)];
        return 'Seen.';
      },
    },
  });
  const { turns, session } = await startApplication({ orchestrators: [desk] });

  await turns.execute('desk', 'look', { sessionId: await session() });

  expect(seen).toContain('turn.step');
  expect(seen.filter((name) => OPERATIONS.includes(name.split('.').at(-1) ?? ''))).toEqual([]);
});

it('STA-28 imports no control plane into orchestrators and their tools', () => {
  const files = ['orchestrator', 'orchestration'].flatMap((folder) =>
    readdirSync(join(LIB, folder)).map((file) => join(LIB, folder, file)),
  );

  const known = new Set<string>();
  for (const file of files) addImports(file, known);

  expect(known.size).toBeGreaterThan(files.length);
  expect([...known].filter((file) => CONTROL_PLANE.some((part) => file.startsWith(part)))).toEqual([]);
});

/** The own and inherited methods of a value and of its properties. */
function* methodsOf(value: object, path: string, depth: number): Generator<string> {
  const names = new Set<string>();
  for (let at: object = value; at !== Object.prototype && at !== null; at = Object.getPrototypeOf(at) as object) {
    for (const name of Object.getOwnPropertyNames(at)) names.add(name);
  }
  for (const name of names) {
    const held = heldBy(value, name);
    if (typeof held === 'function') yield `${path}.${name}`;
    if (typeof held === 'object' && held !== null && depth > 0) yield* methodsOf(held, `${path}.${name}`, depth - 1);
  }
}

/** Reads a property. Some getters throw when a part is missing. */
function heldBy(value: object, name: string): unknown {
  try {
    return Reflect.get(value, name);
  } catch {
    return undefined;
  }
}

function addImports(file: string, known: Set<string>): void {
  if (known.has(file)) return;
  known.add(file);
  const code = readFileSync(file, 'utf8').replaceAll(/import type .*?;/gs, '');
  for (const [, names, specifier] of code.matchAll(/(?:import|export)\s+([^;']*?)\s*from\s*'(\.[^']+)'/g)) {
    const onlyTypes = /^\{(\s*type\s[^,}]+,?)*\s*\}$/.test(names);
    if (!onlyTypes) addImports(resolve(dirname(file), specifier.replace(/\.js$/, '.ts')), known);
  }
}
