import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import ts from 'typescript';
import { eventually } from '../support/eventually.js';
import { PROJECT } from './pages.js';

/** The files of a page as an application in a process of its own, on the package as it was built. */
export class PageApplication {
  private constructor(
    readonly url: string,
    private readonly child: ChildProcess,
    private readonly folder: string,
  ) {}

  /** @param files TypeScript by name, `main.ts` among them, which listens on PORT */
  static async start(files: ReadonlyMap<string, string>): Promise<PageApplication> {
    // Inside the package, so that it is found by its name.
    mkdirSync(join(PROJECT, 'build'), { recursive: true });
    const folder = mkdtempSync(join(PROJECT, 'build/page-'));
    for (const [name, text] of files) writeFileSync(join(folder, name.replace(/ts$/, 'js')), compiled(text));
    const port = await freePort();
    const child = spawn(process.execPath, [join(folder, 'main.js')], {
      env: { PATH: process.env.PATH, PORT: `${port}` },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    // A test that fails must not leave it behind.
    process.once('exit', () => child.kill('SIGKILL'));
    const application = new PageApplication(`http://127.0.0.1:${port}`, child, folder);
    const answers = (): Promise<boolean> =>
      fetch(application.url).then(
        () => true,
        () => child.exitCode !== null,
      );
    await eventually(answers, { limitMs: 60_000, what: 'that the application of the page answers' });
    return application;
  }

  post(path: string, headers: Record<string, string>, body?: object): Promise<Response> {
    return fetch(`${this.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
  }

  async stop(): Promise<void> {
    const over = new Promise((resolve) => this.child.once('exit', resolve));
    if (this.child.exitCode === null && this.child.kill('SIGKILL')) await over;
    rmSync(this.folder, { recursive: true, force: true });
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

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
