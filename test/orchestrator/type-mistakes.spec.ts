import { join } from 'node:path';
import ts from 'typescript';

const PROJECT = process.cwd();

const IMPORTS = `
  import {
    defineOrchestrator, Intent, Orchestrator, reply, SessionsModule, type TurnContext, turnOutcome, type TurnOutcome,
  } from 'nestjs-agent-sessions';
  interface Desk { orderId: number; note?: string; mode?: 'open' | 'closed' }
  export const used = [defineOrchestrator, Intent, Orchestrator, reply, SessionsModule, turnOutcome] as const;
  export type Used = [TurnContext, TurnOutcome];
`;
const inClass = (member: string): string =>
  `@Orchestrator({ name: 'desk' })\nexport class Bot {\n@Intent()\n${member}\n}`;
const inObject = (intent: string): string =>
  `export const bot = defineOrchestrator<Desk>({ name: 'desk', initialState: () => ({ orderId: 0 }), intents: { answer: ${intent} } });`;

const NOT_AN_OUTCOME = 'An intent returns reply(...)';

/** What a user writes by mistake, and a part of the compiler's message. */
const MISTAKES: readonly (readonly [string, string])[] = [
  [
    inClass(`answer(turn: TurnContext<Desk>) { return reply(turn.input.text, { state: { orderID: 7 } }); }`),
    'no key orderID',
  ],
  [
    inClass(`answer(turn: TurnContext<Desk>) { return reply('', { state: { orderId: 7, nota: 'x' } }); }`),
    'no key nota',
  ],
  [
    inClass(`async answer(turn: TurnContext<Desk>) { return turnOutcome({ state: { orderID: turn.turnIndex } }); }`),
    'no key orderID',
  ],
  [inClass(`answer(turn: TurnContext<Desk>) { return { orderid: turn.turnIndex }; }`), 'no key orderid'],
  [inClass(`answer(turn: TurnContext<Desk>) { return { orderId: 7, orderid: turn.turnIndex }; }`), 'no key orderid'],
  [inClass(`answer(turn: TurnContext<Desk>) { return { text: turn.input.text }; }`), 'no key text'],
  [
    inClass(`answer(turn: TurnContext<Desk>) { return turn.turnIndex > 0 ? 'yes' : { orderid: 7 }; }`),
    'no key orderid',
  ],
  [inClass(`answer() { return 42; }`), NOT_AN_OUTCOME],
  [inClass(`async answer(turn: TurnContext<Desk>) { return turn.turnIndex; }`), NOT_AN_OUTCOME],
  [inClass(`answer() { return [reply('a')]; }`), NOT_AN_OUTCOME],
  [inClass(`answer() { return null; }`), NOT_AN_OUTCOME],
  [inClass(`answer() { return new Date(); }`), NOT_AN_OUTCOME],
  [inClass(`*answer() { yield 'a'; }`), NOT_AN_OUTCOME],
  [inClass(`answer(turn: TurnContext<Desk>) { return turn.turnIndex === 0; }`), NOT_AN_OUTCOME],
  [inObject(`(turn) => reply(turn.input.text, { state: { orderID: 7 } })`), 'orderID'],
  [inObject(`async (turn) => reply(turn.input.text, { state: { orderID: 7 } })`), 'orderID'],
  [inObject(`() => reply('', { state: { orderId: '7' } })`), 'not assignable'],
  [inObject(`() => ({ orderid: 7 })`), 'orderid'],
  [inObject(`() => 42`), 'not assignable'],
  [inObject(`async () => 42`), 'not assignable'],
  [inObject(`() => null`), 'not assignable'],
  [`export const root = SessionsModule.forRoot({ ttlSeconds: '1h' });`, '"1h"'],
  [`export const root = SessionsModule.forRoot({ orchestration: { ttlSeconds: 'forever' } });`, '"forever"'],
];

const CORRECT: readonly string[] = [
  inClass(
    `answer(turn: TurnContext<Desk>) { return reply(turn.input.text, { state: { orderId: 7, note: undefined } }); }`,
  ),
  inClass(
    `answer(turn: TurnContext<Desk>) { return reply('', { state: { mode: turn.turnIndex > 0 ? 'open' : 'closed' } }); }`,
  ),
  inClass(`async answer(turn: TurnContext<Desk>) { return turn.turnIndex > 0 ? { note: 'x' } : reply('hi'); }`),
  inClass(
    `answer(turn: TurnContext<Desk>): TurnOutcome<Desk> { return reply('', { state: { orderId: turn.turnIndex } }); }`,
  ),
  inClass(`async answer(turn: TurnContext<Desk>): Promise<TurnOutcome> { return reply(turn.input.text); }`),
  inClass(`answer({ state }: TurnContext<Desk>) { return state.orderId > 0 ? 'yes' : undefined; }`),
  inClass(`answer({ state }: TurnContext<Desk>) { return { ...state, orderId: 8 }; }`),
  inClass(`answer(turn: TurnContext) { return { anything: turn.input.text }; }`),
  inClass(`answer() { return { anything: 7 }; }`),
  inClass(`answer(): void {}`),
  inClass(`async answer(): Promise<string> { return 'hi'; }`),
  inClass(`answer(): never { throw new Error('no'); }`),
  inClass(`answer(): any { return 7; }`),
  `abstract class Base<State extends object> {
    @Intent() answer(turn: TurnContext<State>): TurnOutcome<State> { return reply<State>(turn.input.text); }
  }
  @Orchestrator({ name: 'desk' }) export class Bot extends Base<Desk> {}`,
  `import { applyDecorators, SetMetadata } from '@nestjs/common';
  const Audited = () => applyDecorators(Intent(), SetMetadata('audited', true));
  @Orchestrator({ name: 'desk' }) export class Bot { @Audited() answer(turn: TurnContext<Desk>) { return turn.input.text; } }`,
  `export const named = (name: string): MethodDecorator => Intent(name);`,
  inObject(`(turn) => reply(turn.input.text, { state: { orderId: turn.state.orderId + 1, mode: 'open' } })`),
  inObject(`async (turn) => (turn.turnIndex > 0 ? { note: 'x' } : 'hi')`),
  inObject(`() => turnOutcome({ state: { note: undefined }, status: 'completed' })`),
  inObject(`() => {}`),
  `export const bot = defineOrchestrator({ name: 'desk', intents: { answer: ({ input }) => ({ said: input.text }) } });`,
  `export const bot = defineOrchestrator({
    name: 'desk', initialState: () => ({ count: 0 }), intents: { answer: ({ state }) => ({ count: state.count + 1 }) },
  });`,
  `export const root = SessionsModule.forRoot({ ttlSeconds: '3600', orchestration: { ttlSeconds: 'never' } });`,
  `export const root = SessionsModule.forRoot({ ttlSeconds: 3600, orchestration: { ttlSeconds: '60' } });`,
];

describe('the types of orchestrators and options', () => {
  let problemsOf: (code: string) => string[];

  beforeAll(() => {
    problemsOf = compile([...MISTAKES.map(([code]) => code), ...CORRECT]);
  }, 120_000);

  it.each(MISTAKES.map(([code, message]) => ({ code, shown: onOneLine(code), message })))(
    'DAY-16 rejects $shown',
    ({ code, message }) => {
      const problems = problemsOf(code);
      expect(problems).toHaveLength(1);
      expect(problems[0]).toContain(message);
      expect(problems[0]).not.toContain('No overload matches');
    },
  );

  it.each(CORRECT.map((code) => ({ code, shown: onOneLine(code) })))('DAY-16 accepts $shown', ({ code }) => {
    expect(problemsOf(code)).toEqual([]);
  });
});

function onOneLine(code: string): string {
  return code.replaceAll(/\s+/g, ' ');
}

/** Compiles each program as a module of its own. @returns a function that returns the compiler's messages for a program */
function compile(programs: readonly string[]): (code: string) => string[] {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(PROJECT, 'tsconfig.json'), (file) => ts.sys.readFile(file)).config,
    { ...ts.sys, readDirectory: () => [] },
    PROJECT,
  );
  const files = new Map(programs.map((code, n) => [join(PROJECT, `mistake-${n}.ts`), IMPORTS + code]));
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (name, languageVersion, ...more) => {
    const text = files.get(name);
    return text === undefined
      ? read(name, languageVersion, ...more)
      : ts.createSourceFile(name, text, languageVersion, true);
  };
  const exists = host.fileExists.bind(host);
  host.fileExists = (name) => files.has(name) || exists(name);
  const program = ts.createProgram(
    [...files.keys()],
    { ...options, noUnusedLocals: false, noUnusedParameters: false },
    host,
  );
  return (code) => {
    const source = program.getSourceFile([...files.keys()][programs.indexOf(code)]);
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      ({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'),
    );
  };
}
