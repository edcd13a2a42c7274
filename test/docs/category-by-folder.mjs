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

/** A plugin of typedoc: the root entry's page is by domain, as `lib/` is. */
export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    const root = project.getChildByName('nestjs-agent-sessions');
    for (const reflection of root?.children ?? []) {
      const folder = /\/lib\/(\w+)\//.exec(reflection.sources?.[0]?.fullFileName ?? '')?.[1];
      const category = CATEGORIES[folder] ?? 'The module';
      for (const commented of reflection.signatures ?? [reflection]) {
        commented.comment ??= new Comment();
        commented.comment.blockTags.push(new CommentTag('@category', [{ kind: 'text', text: category }]));
      }
    }
  });
}
