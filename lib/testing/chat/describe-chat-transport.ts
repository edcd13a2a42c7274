import { type ChatTransportTarget } from './chat-transport-target.js';
import { chatTransportTests } from './chat-transport-tests.js';

/** The time limit of a test: it has a run for each write of the answers. */
const TIMEOUT_MS = 120_000;

/**
 * Registers tests of an application with the chat controller (AIS-23). They send messages with the client of `ai` over
 * HTTP, kill the worker at every write of the answers, and check what the client shows: nothing twice, no unknown chunk,
 * and in the end the stored messages. It uses only the test runner's globals `describe`, `it` and `expect`. Jest has
 * them, and Vitest with `globals: true`.
 *
 * ```ts
 * const model = scriptedModel(({ step }) =>
 *   step === 0 ? { calls: [{ name: 'findOrder', input: { orderId: '7' } }] } : 'Order 7 is shipped.',
 * );
 * describeChatTransport('the shop assistant', {
 *   messages: ['Where is order 7?'],
 *   model,
 *   start: async (store) => {
 *     const builder = Test.createTestingModule({ imports: [AppModule] });
 *     builder.overrideProvider(SESSIONS_ADAPTER).useValue(store).overrideProvider(MODEL).useValue(model);
 *     const app = (await builder.compile()).createNestApplication();
 *     await app.listen(0);
 *     return app;
 *   },
 * });
 * ```
 */
export function describeChatTransport(name: string, target: ChatTransportTarget): void {
  describe(name, () => {
    for (const { title, run } of chatTransportTests(target)) it(title, run, target.timeoutMs ?? TIMEOUT_MS);
  });
}
