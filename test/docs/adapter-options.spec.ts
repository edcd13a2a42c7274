import { join } from 'node:path';
import ts from 'typescript';
import { resolveOptions as resolveRedisOptions } from '../../lib/store/redis/redis-adapter.options.js';
import { resolveOptions as resolveTypeormOptions } from '../../lib/store/typeorm/typeorm-adapter.options.js';
import { PROJECT, read, readPage } from './pages.js';

type Tree = Record<string, unknown>;

const INTERFACES = [
  ['typeormAdapter', 'TypeormAdapterOptions', 'lib/store/typeorm/typeorm-adapter.options.ts'],
  ['redisAdapter', 'RedisAdapterOptions', 'lib/store/redis/redis-adapter.options.ts'],
  ['bullmqQueue', 'BullmqQueueOptions', 'lib/queue/bullmq/bullmq-queue.options.ts'],
] as const;

describe('the options of stores and of the queue in docs/options.md', () => {
  const { text } = readPage('docs/options.md').blocks.find(({ text }) => text.includes('sqlite: {'))!;
  const shown = evaluate(text);

  it.each(INTERFACES)('DOC names every option of %s, with the default that its comment gives', (name, type, file) => {
    for (const [path, comment] of commentsOf(type, file)) {
      expect(text).toMatch(new RegExp(`\\b${path.at(-1)}\\b`));
      const value = path.reduce<unknown>((tree, key) => (tree as Tree | undefined)?.[key], shown[name]);
      if (typeof value === 'object' || value === undefined || !/default/i.test(comment)) continue;
      const said = JSON.stringify(value).replaceAll('"', '');
      expect(comment).toMatch(new RegExp(`(?<![\\w-])${said}(?![\\w-])`));
    }
  });

  it('DOC gives the defaults of the stores', () => {
    const { url } = shown.redisAdapter as { url: string };

    expect(resolveTypeormOptions(shown.typeormAdapter as never)).toEqual(resolveTypeormOptions({} as never));
    expect(resolveRedisOptions(shown.redisAdapter as never)).toEqual(resolveRedisOptions({ url }));
  });
});

/** Returns the options that the block passes to each function. */
function evaluate(block: string): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  const names = INTERFACES.map(([name]) => name);
  // oxlint-disable-next-line typescript/no-implied-eval -- the page is ours
  const run = new Function(...names, 'dataSource', block.replaceAll(/^import .*$/gm, '')) as (...a: unknown[]) => void;
  run(...names.map((name) => (options: unknown) => (given[name] = options)), {});
  return given;
}

/** Returns the path of each option, also of nested ones, and its comment with numbers as in code. */
function commentsOf(type: string, file: string): [path: string[], comment: string][] {
  const source = ts.createSourceFile(join(PROJECT, file), read(file), ts.ScriptTarget.ES2022, true);
  const found = source.statements.find((node) => ts.isInterfaceDeclaration(node) && node.name.text === type);
  const visit = (node: ts.InterfaceDeclaration | ts.TypeLiteralNode, path: string[]): [string[], string][] =>
    node.members.filter(ts.isPropertySignature).flatMap((member) => {
      const own = [...path, member.name.getText()];
      const comment = ts.getJSDocCommentsAndTags(member).map((part) => part.getText());
      const inner = member.type && ts.isTypeLiteralNode(member.type) ? visit(member.type, own) : [];
      return [[own, comment.join('\n').replaceAll(/(\d)[ ,](\d{3})\b/g, '$1$2')], ...inner];
    });
  return visit(found as ts.InterfaceDeclaration, []);
}
