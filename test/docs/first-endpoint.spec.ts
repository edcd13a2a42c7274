import { PageApplication } from './page-application.js';
import { read } from './pages.js';

const page = read('docs/first-endpoint.md');
/** The files of step 2. Later steps only add files. */
const files = new Map(
  [...page.matchAll(/`src\/([\w.-]+)`:\n\n```ts\n(.*?)```/gs)].map(([, name = '', text = '']) => [name, text]),
);

describe('the applications of the pages', () => {
  it('DOC docs/first-endpoint.md streams an answer only to the user of the session', async () => {
    const application = await PageApplication.start(files);
    const as = (user: string): Record<string, string> => ({ authorization: `Bearer ${user}-secret` });
    const begun = await application.post('/chat/sessions', as('ann'));
    const { id: session } = (await begun.json()) as { id: string };
    const ann = { ...as('ann'), 'x-session-id': session };
    const said = await application.post('/chat', ann, { text: 'Where is order 7?' });
    const { id: turn } = (await said.json()) as { id: string };
    const events = (headers: Record<string, string>): Promise<Response> =>
      fetch(`${application.url}/chat/turns/${turn}/events`, { headers });

    const answer = await (await events(ann)).text();
    const bobs = await events({ ...ann, ...as('bob') });

    expect(answer).toMatch(/^\s*event: delta\nid: 1\ndata: {"text":"Order "}\n/);
    expect(answer).toMatch(/event: settled\nid: \d+\ndata: {.*"reply":"Order 7 is on its way\./);
    expect(bobs.status).toBe(404);
    expect(await bobs.json()).toMatchObject({ code: 'SESSION_NOT_FOUND' });
    expect((await application.post('/chat/sessions', {})).status).toBe(401);
  }, 120_000);
});
