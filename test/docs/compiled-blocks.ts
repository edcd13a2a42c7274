import { join } from 'node:path';
import ts from 'typescript';
import { BlockSource, type Origin, specifierOf } from './block-source.js';
import { type Block, lineAt, PROJECT } from './pages.js';

const PACKAGE = 'nestjs-agent-sessions';
/** The names that readers have in their applications. */
const YOURS = join(PROJECT, 'test/docs/yours.ts');
/** Modules whose names a block may use without an import. The first with a name wins. */
const KNOWN = [
  YOURS,
  PACKAGE,
  ...['http', 'adapter', 'ai-sdk', 'bullmq', 'client', 'redis', 'terminus', 'testing', 'typeorm'].map(
    (entry) => `${PACKAGE}/${entry}`,
  ),
  ...['common', 'core', 'microservices', 'testing', 'websockets'].map((name) => `@nestjs/${name}`),
];

/**
 * Compiles the TypeScript and JavaScript of the pages as in the strictest application, each block as a separate module.
 * CONTRIBUTING.md describes what a block may omit.
 */
export class CompiledBlocks {
  private readonly options: ts.CompilerOptions;
  private readonly files = new Map<string, ts.SourceFile>();
  private readonly sources = new Map<string, BlockSource>();
  private readonly program: ts.Program;

  constructor(blocks: readonly Block[]) {
    const { options } = ts.parseJsonConfigFileContent(
      ts.readConfigFile(join(PROJECT, 'tsconfig.json'), (file) => ts.sys.readFile(file)).config,
      { ...ts.sys, readDirectory: () => [] },
      PROJECT,
    );
    const lib = ['lib.es2023.d.ts', 'lib.dom.d.ts'];
    const unlike = { noUnusedLocals: false, noUnusedParameters: false, allowJs: true, checkJs: true };
    const stricter = { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };
    // Without paths, the package is the one that was built.
    this.options = { ...options, lib, jsx: ts.JsxEmit.ReactJSX, ...unlike, ...stricter, paths: {} };
    const host = this.host();
    const known = this.namesOf(KNOWN, host);
    for (const block of blocks) {
      const earlier = [...this.sources.values()].filter((source) => source.block.page === block.page).reverse();
      const source = new BlockSource(
        block,
        (name) => earlier.find(({ declared }) => declared.has(name))?.declared.get(name) ?? known.get(name),
      );
      this.sources.set(source.file, source);
    }
    this.program = ts.createProgram([...this.sources.keys()], this.options, host);
  }

  /** Returns the compiler's messages for a page, each with its line. */
  problemsOf(page: string): string[] {
    return [...this.sources.values()]
      .filter(({ block }) => block.page === page)
      .flatMap((source) => this.problems(source));
  }

  private problems({ file, block, text }: BlockSource): string[] {
    const compiled = this.program.getSourceFile(file);
    const found = [...this.program.getSyntacticDiagnostics(compiled), ...this.program.getSemanticDiagnostics(compiled)];
    return found.map(({ start = 0, messageText }) => {
      const line = block.line + lineAt(text, start) - 2;
      return `${block.page}:${line} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    });
  }

  /** Serves blocks as virtual files. Their relative imports resolve to a file of their page, else to the reader's. */
  private host(): ts.CompilerHost {
    const host = ts.createCompilerHost(this.options);
    const onDisk = host.getSourceFile.bind(host);
    const cache = ts.createModuleResolutionCache(PROJECT, (file) => file, this.options);
    return {
      ...host,
      getSourceFile: (file, version, ...more) => {
        const source = this.sources.get(file);
        const parsed =
          this.files.get(file) ??
          (source ? ts.createSourceFile(file, source.text, version) : onDisk(file, version, ...more));
        if (parsed) this.files.set(file, parsed);
        return parsed;
      },
      resolveModuleNameLiterals: (literals, from, redirected, options, file) =>
        literals.map((literal) => {
          const known = this.fileOf(literal.text, from);
          if (known) {
            const extension = known.endsWith('.tsx') ? ts.Extension.Tsx : ts.Extension.Ts;
            return { resolvedModule: { resolvedFileName: known, extension } };
          }
          const mode = ts.getModeForUsageLocation(file, literal, options);
          return ts.resolveModuleName(literal.text, from, options, host, cache, redirected, mode);
        }),
    };
  }

  private fileOf(specifier: string, from: string): string | undefined {
    if (specifier === YOURS) return YOURS;
    const importing = this.sources.get(from)?.block;
    if (importing && specifier.startsWith('.')) {
      const name = specifier.replace(/^\.\/(.*)\.js$/, '$1.ts');
      const onPage = [...this.sources.values()].filter(({ block }) => block.page === importing.page);
      const shown = onPage.findLast(({ block }) => block.file === name);
      return shown?.file ?? (importing.file ? undefined : YOURS);
    }
    return [...this.sources.keys()].find((file) => specifier === specifierOf(file));
  }

  /** Returns the exports of the modules, by name. The first module with a name wins. */
  private namesOf(modules: readonly string[], host: ts.CompilerHost): Map<string, Origin> {
    const index = join(PROJECT, 'known.ts');
    const text = modules.map((specifier) => `export * as _ from '${specifier}';`).join('\n');
    this.files.set(
      index,
      ts.createSourceFile(index, text, {
        languageVersion: ts.ScriptTarget.ES2022,
        impliedNodeFormat: ts.ModuleKind.ESNext,
      }),
    );
    const program = ts.createProgram([index], this.options, host);
    const checker = program.getTypeChecker();
    const names = new Map<string, Origin>();
    for (const statement of program.getSourceFile(index)?.statements ?? []) {
      const { moduleSpecifier } = statement as ts.ExportDeclaration;
      const from = (moduleSpecifier as ts.StringLiteral).text;
      const symbol = checker.getSymbolAtLocation(moduleSpecifier as ts.StringLiteral);
      for (const exported of symbol ? checker.getExportsOfModule(symbol) : []) {
        const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0;
        const target = isAlias ? checker.getAliasedSymbol(exported) : exported;
        const isType = !(target.flags & ts.SymbolFlags.Value);
        if (!names.has(exported.name)) names.set(exported.name, { from, isType, isYours: from === YOURS && !isAlias });
      }
    }
    return names;
  }
}
