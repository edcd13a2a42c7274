import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { nodeProcess } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/services/server-process.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { PROJECT } from './pages.js';

/** Runs the files of a page as an application in a separate process, with the built package, until the last test of the file. */
export class PageApplication {
  private constructor(readonly url: string) {}

  /** @param files TypeScript by name, `main.ts` among them, which listens on PORT */
  static async start(files: ReadonlyMap<string, string>): Promise<PageApplication> {
    // The folder is inside the package, so that imports by the package's name resolve.
    const build = join(PROJECT, 'build');
    mkdirSync(build, { recursive: true });
    const folder = temporaryFolder(build);
    for (const [name, text] of files) writeFileSync(join(folder, name.replace(/ts$/, 'js')), compiled(text));
    const port = await freePort();
    const child = nodeProcess(join(folder, 'main.js'), { PORT: `${port}` });
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (printed += String(text)));
    const url = `http://127.0.0.1:${port}`;
    const answers = (): Promise<boolean> => {
      if (child.exitCode !== null) throw new Error(`The application of the page ended:\n${printed}`);
      return fetch(url).then(
        () => true,
        () => false,
      );
    };
    await eventually(answers, { limitMs: 60_000, what: 'that the application of the page answers' });
    return new PageApplication(url);
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
