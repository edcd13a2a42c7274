import { Comment, CommentTag, Converter } from 'typedoc';

const CATEGORIES = {
  session: 'Sessions',
  records: 'Sessions',
  turn: 'Turns',
  orchestrator: 'Orchestrators',
  orchestration: 'Steps and tools',
  state: 'State of sessions',
  conversation: 'The conversation',
  transport: 'Guards, decorators and errors',
  http: 'Controllers',
  ledger: 'Stored types and ports',
  store: 'Stores',
  maintenance: 'Stores',
  common: 'Everywhere',
};

const LARGE_ENTRIES = ['', '/types', '/adapter'].map((entry) => `nestjs-agent-sessions${entry}`);

/** A TypeDoc plugin that divides the pages of the large entry points by domain, as in `lib/`. */
export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    const entries = LARGE_ENTRIES.map((name) => project.children?.find((child) => child.name === name));
    for (const reflection of entries.flatMap((entry) => entry?.children ?? [])) {
      const folder = /\/lib\/(\w+)\//.exec(reflection.sources?.[0]?.fullFileName ?? '')?.[1];
      const category = CATEGORIES[folder] ?? 'The module';
      for (const commented of reflection.signatures ?? [reflection]) {
        commented.comment ??= new Comment();
        commented.comment.blockTags.push(new CommentTag('@category', [{ kind: 'text', text: category }]));
      }
    }
  });
}
