import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { temporaryFolder } from '../support/temporary-folder.js';

const project = process.cwd();
const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: Record<string, { types?: string }> };
const ENTRIES = Object.values(exports).flatMap(({ types }) => (types === undefined ? [] : join(project, types)));

/** The strictest options of an application. */
const STRICT: ts.CompilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  experimentalDecorators: true,
  skipLibCheck: false,
  noEmit: true,
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2023.d.ts'],
  types: ['node'],
};

/** The exports of the build's script. */
interface Declarations {
  readonly declarationFiles: () => string[];
  readonly parse: (file: string) => ts.SourceFile;
  readonly exactOptionals: (source: ts.SourceFile) => ts.Node[];
}

const APPLICATION = `
  import {
    defineOrchestrator, Intent, reply, SessionsModule, type SessionStore, type TurnContext, type TurnService,
  } from 'nestjs-agent-sessions';
  declare const found: string | undefined;
  declare const seconds: number | undefined;
  interface State { readonly order?: string; readonly count: number }
  export const desk = defineOrchestrator<State>({
    name: 'desk',
    version: found,
    maxIterations: seconds,
    initialState: () => ({ count: 0 }),
    on: { routed: undefined },
    intents: { answer: ({ input }) => reply(input.text, { state: { count: seconds }, data: undefined }) },
  });
  export class Counter {
    @Intent() right(turn: TurnContext<State>) { return reply('', { state: { count: turn.turnIndex, order: undefined } }); }
    // @ts-expect-error another type of count
    @Intent() value(turn: TurnContext<State>) { return { count: turn.input.text }; }
    // @ts-expect-error no key cuont
    @Intent() key(turn: TurnContext<State>) { return reply('', { state: { cuont: turn.turnIndex } }); }
  }
  export const root = SessionsModule.forRoot({ ttlSeconds: seconds, isGlobal: undefined, turns: { retry: { attempts: seconds } } });
  export async function say(sessions: SessionStore, turns: TurnService): Promise<string | null | undefined> {
    const session = await sessions.create({ userId: 'ann', workspaceId: found, metadata: undefined });
    const turn = await turns.submit(desk.name, 'hi', { sessionId: session.id, idempotencyKey: found });
    return (await turns.result(turn.id, { timeoutMs: seconds })).reply;
  }
`;

const AI_APPLICATION = `
  import { generateText, jsonSchema, Output, streamText, wrapLanguageModel } from 'ai';
  import { type TurnContext } from 'nestjs-agent-sessions';
  import { type AnyLanguageModel, durableCalls, durableModel, streamReply } from 'nestjs-agent-sessions/ai-sdk';
  declare const model: Parameters<typeof wrapLanguageModel>[0]['model'];
  declare const found: string | undefined;
  export async function answer(turn: TurnContext): Promise<string> {
    const wrapped = wrapLanguageModel({ model, middleware: [durableCalls(turn), durableCalls(turn, { key: found })] });
    const { text } = await generateText({ model: durableModel(turn, model, { key: found }), prompt: 'Hi' });
    return text + (await streamText({ model: wrapped, prompt: 'Hi' }).text);
  }
  const topic = Output.object({ schema: jsonSchema<{ topic: string }>({ type: 'object' }) });
  export const object = (turn: TurnContext, model: AnyLanguageModel) => streamReply(turn, { model, output: topic });
  export const plain = (turn: TurnContext, model: AnyLanguageModel) => streamReply(turn, { model, output: Output.text() });
  export const wrong = (turn: TurnContext, model: AnyLanguageModel) => {
    // @ts-expect-error a schema without its format
    return streamReply(turn, { model, output: { topic: 'string' } });
  };
`;

const PAGE = `
  import { readAnswer, type SessionView, stateClient, type TurnView } from 'nestjs-agent-sessions/client';
  export async function show(session: SessionView, turn: TurnView): Promise<string> {
    let shown = turn.input?.text ?? session.id;
    for await (const { text, settled } of readAnswer({ url: \`/turns/\${turn.id}/events\` })) shown = settled?.code ?? text;
    return shown;
  }
  export const state = stateClient({ baseUrl: 'https://example.org' });
`;

/** An application that lets the compiler infer the types of results, and writes their names into its declarations. */
const INFERRING_APPLICATION = `
  import {
    type CompactionError,
    createOrchestrationStateManager,
    defineSessionManager,
    type LaneService,
    type OrchestrationService,
    type OrchestratorHandle,
    type SessionRecords,
    type SessionStateService,
    type SessionStore,
    type TaskRecord,
    type ToolUse,
    type Turn,
    type TurnContext,
    type TurnReport,
    type TurnStoppedError,
  } from 'nestjs-agent-sessions';
  export const carts = defineSessionManager<{ items: string[] }>({ namespace: 'carts' });
  export const manager = createOrchestrationStateManager();
  export const counts = (lanes: LaneService) => lanes.counts();
  export const laneList = (lanes: LaneService) => lanes.list();
  export const recovery = (lanes: LaneService) => lanes.recovery;
  export const erased = (records: SessionRecords) => records.erase({ sessionId: 's' });
  export const touched = (sessions: SessionStore) => sessions.touchWithOutcome('s');
  export const history = (desk: OrchestratorHandle) => desk.history('s');
  export const undone = (desk: OrchestratorHandle) => desk.undo('s');
  export const compacted = (desk: OrchestratorHandle) => desk.command('compact', { sessionId: 's' });
  export const asked = (desk: OrchestratorHandle, turn: TurnContext) =>
    desk.asTool(turn).execute({ input: 'hi' }, { toolCallId: 'c' });
  export const tasks = (state: SessionStateService) => state.task.list('s');
  export const tools = (state: SessionStateService) => state.tools.list('s');
  export const flow = (state: SessionStateService) => state.flow.load('s', 'f');
  export const exported = (state: SessionStateService) => state.export('s');
  export const described = (state: SessionStateService) => state.describe({ sessionId: 's' });
  export const admitted = (service: OrchestrationService) => service.admitTool('s', 'search');
  export const taskState = (task: TaskRecord) => task.state;
  export const waits = (turn: Turn) => turn.waitingFor;
  export const taskOf = (turn: TurnContext) => turn.task;
  export const modules = (turn: TurnContext) => turn.modules;
  export const created = (turn: TurnContext) => turn.modules.task.create();
  export const meter = (turn: TurnContext) => turn.usage;
  export const progress = (turn: TurnContext) => turn.tools.state;
  export const iterations = ({ iterations }: TurnReport) => iterations;
  export const source = ({ iterations }: TurnReport) => iterations[0]?.decision.source;
  export const ended = ({ endedBy, usage, compaction }: TurnReport) => ({ endedBy, usage, compaction });
  export const used = ({ outcome, moved }: ToolUse) => ({ outcome, moved });
  export const phase = ({ phase }: CompactionError) => phase;
  export const stopped = ({ why }: TurnStoppedError) => why;
`;

const MAIN = join(project, 'application.ts');

describe('the declarations of the package', () => {
  it('FIX-78 accept undefined for each optional property', async () => {
    const { declarationFiles, exactOptionals, parse } = (await import(
      join(project, 'declarations.js')
    )) as Declarations;
    const exact = declarationFiles().flatMap((file) =>
      exactOptionals(parse(file)).map((node) => `${file}: ${node.getText()}`),
    );
    expect(exact).toEqual([]);
  });

  it.each([
    ['nodenext', ts.ModuleKind.NodeNext, ts.ModuleResolutionKind.NodeNext],
    ['bundler', ts.ModuleKind.ESNext, ts.ModuleResolutionKind.Bundler],
  ])(
    'FIX-78 compile under %s with exactOptionalPropertyTypes, noUncheckedIndexedAccess and without skipLibCheck',
    (_, module, moduleResolution) => {
      const program = programOf(APPLICATION, { ...STRICT, module, moduleResolution });
      const ours = program
        .getSourceFiles()
        .filter(({ fileName }) => [MAIN, join(project, 'dist/')].some((path) => fileName.startsWith(path)));
      expect(ours.length).toBeGreaterThan(ENTRIES.length);
      const problems = ours.flatMap((file) => [
        ...program.getSyntacticDiagnostics(file),
        ...program.getSemanticDiagnostics(file),
      ]);
      expect(messagesOf(problems)).toEqual([]);
    },
    120_000,
  );

  it('FIX-78 name every inferred result of an application that emits declarations', () => {
    expect(declarationProblems(INFERRING_APPLICATION)).toEqual([]);
    // Without this, the test would also pass if the compiler reported nothing.
    const unnamed = `import { type OrchestratorConfig } from 'nestjs-agent-sessions';
      export const listeners = ({ on }: OrchestratorConfig) => on;`;
    expect(declarationProblems(unnamed)).toEqual([expect.stringContaining('cannot be named')]);
  }, 120_000);

  it('DAY-21 of /client need neither Nest nor another package, nor the types of Node', () => {
    const { module, moduleResolution } = {
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
    };
    const options = { ...STRICT, module, moduleResolution, lib: ['lib.es2023.d.ts', 'lib.dom.d.ts'], types: [] };
    const program = programOf(PAGE, options, []);
    const files = program.getSourceFiles().filter((file) => !program.isSourceFileDefaultLibrary(file));
    expect(files.length).toBeGreaterThan(10);
    expect(files.map(({ fileName }) => fileName).filter((name) => name.includes('/node_modules/'))).toEqual([]);
    const problems = files.flatMap((file) => [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]);
    expect(messagesOf(problems)).toEqual([]);
  }, 120_000);

  it.each(['node_modules/ai', 'test/ai-7/node_modules/ai'])(
    'AIS-37 take the types of the AI SDK from the version that the application has installed: %s',
    (installed) => {
      const program = programOf(AI_APPLICATION, {
        ...STRICT,
        module: ts.ModuleKind.NodeNext,
        moduleResolution: ts.ModuleResolutionKind.NodeNext,
        lib: ['lib.es2023.d.ts', 'lib.dom.d.ts'],
        paths: { ai: [join(project, installed, 'dist/index.d.ts')] },
      });
      const main = program.getSourceFile(MAIN)!;
      expect(messagesOf([...program.getSyntacticDiagnostics(main), ...program.getSemanticDiagnostics(main)])).toEqual(
        [],
      );
    },
    120_000,
  );
});

/** Returns a program of one file, which imports the package, and of the declarations of these entries. */
function programOf(source: string, options: ts.CompilerOptions, entries: readonly string[] = ENTRIES): ts.Program {
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (name, version, ...more) =>
    name === MAIN ? ts.createSourceFile(name, source, version, true) : read(name, version, ...more);
  host.fileExists = (name) => name === MAIN || ts.sys.fileExists(name);
  return ts.createProgram([MAIN, ...entries], options, host);
}

/** Returns the compiler's messages for an application with `declaration: true` that has installed the package. */
function declarationProblems(source: string): string[] {
  const folder = temporaryFolder();
  const main = join(folder, 'application.ts');
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(project, join(folder, 'node_modules/nestjs-agent-sessions'));
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  writeFileSync(main, source);
  const program = ts.createProgram([main], {
    ...STRICT,
    skipLibCheck: true,
    noEmit: false,
    declaration: true,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    // The package and its dependencies are found through the link, as in an installation.
    preserveSymlinks: true,
    typeRoots: [join(project, 'node_modules/@types')],
  });
  const file = program.getSourceFile(main);
  return messagesOf([...program.getSemanticDiagnostics(file), ...program.getDeclarationDiagnostics(file)]);
}

function messagesOf(problems: readonly ts.Diagnostic[]): string[] {
  return problems.map(
    ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
  );
}
