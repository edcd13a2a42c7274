import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { kill, nodeProcess } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/services/server-process.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { PROJECT } from './pages.js';

/** Runs the files of a page as an application in a separate process, with the built package, until the last test of the file. */
export class PageApplication {
  private child?: ReturnType<typeof nodeProcess>;

  private constructor(
    private readonly folder: string,
    private readonly port: number,
  ) {}

  /**
   * @param files files by name, which are in the folder that the application runs in. TypeScript is compiled; `main.ts`
   * listens on PORT
   */
  static async start(files: ReadonlyMap<string, string>): Promise<PageApplication> {
    // The folder is inside the package, so that imports by the package's name resolve.
    const build = join(PROJECT, 'build');
    mkdirSync(build, { recursive: true });
    const folder = temporaryFolder(build);
    for (const [name, text] of files) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      if (name.endsWith('.ts')) writeFileSync(join(folder, name.replace(/ts$/, 'js')), compiled(text));
      else writeFileSync(join(folder, name), text);
    }
    const application = new PageApplication(folder, await freePort());
    await application.run();
    return application;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Kills the process, and starts another one. @param whileDown called in between */
  async restart(whileDown: () => Promise<unknown>): Promise<void> {
    if (this.child) await kill(this.child);
    await whileDown();
    await this.run();
  }

  private async run(): Promise<void> {
    const child = nodeProcess(join(this.folder, 'main.js'), { PORT: `${this.port}` }, this.folder);
    this.child = child;
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (printed += String(text)));
    const answers = (): Promise<boolean> => {
      if (child.exitCode !== null) throw new Error(`The application of the page ended:\n${printed}`);
      return fetch(this.url).then(
        () => true,
        () => false,
      );
    };
    await eventually(answers, { limitMs: 60_000, what: 'that the application of the page answers' });
  }

  post(path: string, headers: Record<string, string>, body?: object): Promise<Response> {
    return fetch(`${this.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
  }
}

function compiled(text: string): string {
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: {
      module: ts.ModuleKind.ES2022,
      target: ts.ScriptTarget.ES2022,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    },
  });
  return outputText;
}
