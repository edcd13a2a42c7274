import { join } from 'node:path';
import ts from 'typescript';

const PROJECT = process.cwd();

const IMPORTS = `
  import {
    type DataOf, defineOrchestrator, END_TURN, Evaluate, Intent, type JsonValue, Orchestrator, type OrchestratorConfig,
    type OrchestratorHandle, reply, Route, type RouteDecision, SessionsModule, type SessionStore, type TurnContext,
    turnOutcome, type TurnOutcome,
  } from 'nestjs-agent-sessions';
  interface Desk { orderId: number; note?: string; mode?: 'open' | 'closed' }
  export const used = [defineOrchestrator, END_TURN, Evaluate, Intent, Orchestrator, reply, Route, SessionsModule, turnOutcome] as const;
  declare const sessions: SessionStore;
  declare const text: string;
  interface Order { readonly id: number; readonly lines: readonly { readonly name: string; readonly price?: number }[] }
  interface Tree { readonly name: string; readonly parts: readonly Tree[] }
  export type MoreUsed = [JsonValue, OrchestratorConfig, RouteDecision, typeof sessions, typeof text, Order, Tree];
  export type Used = [TurnContext, TurnOutcome, OrchestratorHandle, DataOf<new () => object>];
`;
const inClass = (member: string): string =>
  `@Orchestrator({ name: 'desk', initialState: (): Desk => ({ orderId: 0 }) })\nexport class Bot {\n@Intent()\n${member}\n}`;
const inObject = (intent: string): string =>
  `export const bot = defineOrchestrator<Desk>({ name: 'desk', initialState: () => ({ orderId: 0 }), intents: { answer: ${intent} } });`;

/** Two intents, and what chooses between them. */
const routed = (options: string): string =>
  `export const bot = defineOrchestrator({ name: 'desk', intents: { status: () => 'ok', refund: () => 'ok' }, ${options} });`;
const decorated = (options: string, member: string): string =>
  `@Orchestrator(${options})\nexport class Bot {\n@Intent()\n${member}\n}`;
const inTurn = (code: string): string => `export async function answer(turn: TurnContext) { ${code} }`;
/** Code that uses the data of an orchestrator class, and its handle. */
const withData = (code: string): string => `
  export class Bot {
    @Intent() total(turn: TurnContext<Desk>) {
      return turn.turnIndex > 0 ? reply('later') : reply('ok', { data: { total: turn.turnIndex } });
    }
    @Intent() async list() { return turnOutcome({ data: { lines: ['a'] } }); }
    @Intent() greet() { return reply('hi'); }
    @Intent() note() { return { note: 'x' }; }
    helper(count: number) { return count; }
  }
  declare const bot: OrchestratorHandle<Desk, DataOf<typeof Bot>, { type: 'delta'; data: { text: string } }>;
  export async function ask() {
    const { data } = await bot.execute('hi', { sessionId: 's1' });
    ${code}
  }`;
/** Code that uses a handle with the default types. */
const withHandle = (code: string): string =>
  `export async function ask(bot: OrchestratorHandle) { const options = { sessionId: 's1' }; ${code} }`;

/** A class whose route is this method. */
const routedClass = (method: string): string => `
  @Orchestrator({ name: 'desk' }) export class Bot {
    @Route() ${method}
    @Intent() status() { return 'ok'; }
    @Intent('refund') pay() { return 'ok'; }
  }`;

const NOT_A_ROUTE = 'A route returns the name of an intent';
const NOT_AN_OUTCOME = 'An intent returns reply(...)';

/** What a user writes by mistake, and a part of the compiler's message. */
const MISTAKES = withTitles([
  [inClass(`answer(text: string) { return text; }`), 'The parameter is the turn: (turn: TurnContext)'],
  [inClass(`answer(turn: TurnContext<Desk>['input']) { return turn.text; }`), 'The parameter is the turn'],
  [routedClass(`route(text: string) { return text; }`), 'The parameter is the turn'],
  [inClass(`answer(text = '') { return text; }`), 'The parameter is the turn'],
  [inClass(`answer(text?: string) { return text; }`), 'The parameter is the turn'],
  [inClass(`answer(...texts: string[]) { return texts[0]; }`), 'The parameter is the turn'],
  [
    inClass(`answer(turn: TurnContext<Desk>) { return reply(turn.input.text, { state: { orderID: 7 } }); }`),
    'no key orderID',
  ],
  [
    inClass(`answer(turn: TurnContext<Desk>) { return reply('', { state: { orderId: 7, nota: 'x' } }); }`),
    'no key nota',
  ],
  [
    inClass(`async answer(turn: TurnContext<Desk>) { return turnOutcome({ state: { orderID: turn.turnIndex } }); }`),
    'no key orderID',
  ],
  [inClass(`answer(turn: TurnContext<Desk>) { return { orderid: turn.turnIndex }; }`), 'no key orderid'],
  [inClass(`answer(turn: TurnContext<Desk>) { return { orderId: 7, orderid: turn.turnIndex }; }`), 'no key orderid'],
  [inClass(`answer(turn: TurnContext<Desk>) { return { text: turn.input.text }; }`), 'no key text'],
  [
    inClass(`answer(turn: TurnContext<Desk>) { return turn.turnIndex > 0 ? 'yes' : { orderid: 7 }; }`),
    'no key orderid',
  ],
  ...[
    `answer(turn: TurnContext<Desk>) { return { orderId: turn.input.text }; }`,
    `answer(turn: TurnContext<Desk>) { return reply(turn.input.text, { state: { orderId: 'three' } }); }`,
    `async answer(turn: TurnContext<Desk>) { return { orderId: turn.input.text }; }`,
    `async answer(turn: TurnContext<Desk>) { return turnOutcome({ state: { orderId: turn.input.text } }); }`,
    `answer(turn: TurnContext<Desk>) { return turn.turnIndex > 0 ? 'yes' : { orderId: 'three' }; }`,
    `answer(turn: TurnContext<Desk>) { if (turn.turnIndex > 0) return { orderId: turn.turnIndex > 1 ? 1 : 'three' }; return; }`,
    `answer(turn: TurnContext<Desk>) { return { orderId: null }; }`,
    `answer({ state }: TurnContext<Desk>) { return { ...state, orderId: 'three' }; }`,
  ].map((member): [string, string] => [inClass(member), 'another type of orderId']),
  [inClass(`answer(turn: TurnContext<Desk>) { return { mode: turn.turnIndex }; }`), 'another type of mode'],
  [
    inClass(
      `answer(turn: TurnContext<Desk>) { return reply('', { state: { orderId: Promise.resolve(turn.turnIndex) } }); }`,
    ),
    'orderId is a promise. Await it.',
  ],
  [inClass(`answer() { return 42; }`), NOT_AN_OUTCOME],
  [inClass(`async answer(turn: TurnContext<Desk>) { return turn.turnIndex; }`), NOT_AN_OUTCOME],
  [inClass(`answer() { return [reply('a')]; }`), NOT_AN_OUTCOME],
  [inClass(`answer() { return null; }`), NOT_AN_OUTCOME],
  [inClass(`answer() { return new Date(); }`), NOT_AN_OUTCOME],
  [inClass(`*answer() { yield 'a'; }`), NOT_AN_OUTCOME],
  [inClass(`answer(turn: TurnContext<Desk>) { return turn.turnIndex === 0; }`), NOT_AN_OUTCOME],
  [inObject(`(turn) => reply(turn.input.text, { state: { orderID: 7 } })`), 'orderID'],
  [inObject(`async (turn) => reply(turn.input.text, { state: { orderID: 7 } })`), 'orderID'],
  [inObject(`() => reply('', { state: { orderId: '7' } })`), 'not assignable'],
  [inObject(`() => ({ orderid: 7 })`), 'orderid'],
  [inObject(`() => 42`), 'not assignable'],
  [inObject(`async () => 42`), 'not assignable'],
  [inObject(`() => null`), 'not assignable'],
  [`export const root = SessionsModule.forRoot({ ttlSeconds: '1h' });`, '"1h"'],
  [`export const root = SessionsModule.forRoot({ orchestration: { ttlSeconds: 'forever' } });`, '"forever"'],
]);

const CORRECT = withTitles([
  inClass(`answer({ input }: Pick<TurnContext<Desk>, 'input'>) { return input.text; }`),
  inClass(`answer(_: unknown) { return 'hi'; }`),
  inClass(`answer(turn?: TurnContext<Desk>) { return turn?.input.text; }`),
  inClass(`answer(...[turn]: [TurnContext<Desk>]) { return turn.input.text; }`),
  `interface Shop extends TurnContext<Desk> { readonly context: { readonly currency: string } }
  @Orchestrator({ name: 'desk', initialState: (): Desk => ({ orderId: 0 }) }) export class Bot {
    @Intent() answer({ context }: Shop) { return context.currency; }
  }`,
  routedClass(`route(_: Pick<TurnContext, 'input'>, intents: readonly string[]) { return intents[0]; }`),
  inClass(
    `answer(turn: TurnContext<Desk>) { return reply(turn.input.text, { state: { orderId: 7, note: undefined } }); }`,
  ),
  inClass(
    `answer(turn: TurnContext<Desk>) { return reply('', { state: { mode: turn.turnIndex > 0 ? 'open' : 'closed' } }); }`,
  ),
  inClass(`async answer(turn: TurnContext<Desk>) { return turn.turnIndex > 0 ? { note: 'x' } : reply('hi'); }`),
  inClass(
    `answer(turn: TurnContext<Desk>): TurnOutcome<Desk> { return reply('', { state: { orderId: turn.turnIndex } }); }`,
  ),
  inClass(`async answer(turn: TurnContext<Desk>): Promise<TurnOutcome> { return reply(turn.input.text); }`),
  inClass(`answer({ state }: TurnContext<Desk>) { return state.orderId > 0 ? 'yes' : undefined; }`),
  inClass(`answer({ state }: TurnContext<Desk>) { return { ...state, orderId: 8 }; }`),
  inClass(`answer({ state }: TurnContext<Desk>) { return { ...state, mode: 'open' }; }`),
  inClass(`answer(turn: TurnContext<Desk>) { return { note: undefined, orderId: turn.turnIndex }; }`),
  inClass(`answer(turn: TurnContext<Desk>) { return { orderId: JSON.parse(turn.input.text) }; }`),
  inClass(`answer(turn: TurnContext<Desk>): Partial<Desk> { return { orderId: turn.turnIndex }; }`),
  inClass(`answer() { return reply('', { state: { orderId: 'unchecked' } }); }`),
  `export class Bot { @Intent() answer(turn: TurnContext<{ lines: string[]; order: Order | null; any: unknown; json: JsonValue; isOpen: boolean; n: number }>) {
    return { lines: [], order: { id: turn.turnIndex, lines: [] }, any: 7, json: { a: [1] }, isOpen: true }; } }`,
  `export class Bot { @Intent() answer(turn: TurnContext<{ kind: 'a'; n: number } | { kind: 'b'; s: string }>) {
    return turn.turnIndex > 0 ? { kind: 'a', n: 1 } : { kind: 'b', s: 'x' }; } }`,
  `export class Bot<T> { constructor(readonly value: T) {}
    @Intent() answer(_: TurnContext<{ value: T; n: number }>) { return { value: this.value }; } }`,
  inClass(`answer(turn: TurnContext) { return { anything: turn.input.text }; }`),
  inClass(`answer() { return { anything: 7 }; }`),
  inClass(`answer(): void {}`),
  inClass(`async answer(): Promise<string> { return 'hi'; }`),
  inClass(`answer(): never { throw new Error('no'); }`),
  inClass(`answer(): any { return 7; }`),
  `abstract class Base<State extends object> {
    @Intent() answer(turn: TurnContext<State>): TurnOutcome<State> { return reply<State>(turn.input.text); }
  }
  @Orchestrator({ name: 'desk', initialState: (): Desk => ({ orderId: 0 }) }) export class Bot extends Base<Desk> {}`,
  `import { applyDecorators, SetMetadata } from '@nestjs/common';
  const Audited = () => applyDecorators(Intent(), SetMetadata('audited', true));
  @Orchestrator({ name: 'desk' }) export class Bot { @Audited() answer(turn: TurnContext) { return turn.input.text; } }`,
  `export const named = (name: string): MethodDecorator => Intent(name);`,
  inObject(`(turn) => reply(turn.input.text, { state: { orderId: turn.state.orderId + 1, mode: 'open' } })`),
  inObject(`async (turn) => (turn.turnIndex > 0 ? { note: 'x' } : 'hi')`),
  inObject(`() => turnOutcome({ state: { note: undefined }, status: 'completed' })`),
  inObject(`() => {}`),
  `export const bot = defineOrchestrator({ name: 'desk', intents: { answer: ({ input }) => ({ said: input.text }) } });`,
  `export const bot = defineOrchestrator({
    name: 'desk', initialState: () => ({ count: 0 }), intents: { answer: ({ state }) => ({ count: state.count + 1 }) },
  });`,
  `export const root = SessionsModule.forRoot({ ttlSeconds: '3600', orchestration: { ttlSeconds: 'never' } });`,
  `export const root = SessionsModule.forRoot({ ttlSeconds: 3600, orchestration: { ttlSeconds: '60' } });`,
]);

/** Mistakes that the compiler rejects since DAY-05. */
const MORE_MISTAKES = withTitles([
  [routed(`route: () => 'refnd'`), 'There is no intent refnd.'],
  [routed(`route: (turn) => (turn.turnIndex > 0 ? 'refund' : 'statsu')`), 'There is no intent statsu.'],
  [routed(`route: async (turn) => (turn.turnIndex > 0 ? END_TURN : 'refnd')`), 'There is no intent refnd.'],
  [routed(`route: () => ['status', 'refnd']`), 'There is no intent refnd.'],
  [routed(`route: () => ({ intents: 'refnd', reasoning: 'because' })`), 'There is no intent refnd.'],
  [routed(`route: () => ({ intents: ['refnd'] })`), 'There is no intent refnd.'],
  [routed(`route: () => 'status', iterate: true, initialIntent: 'refnd'`), '"refnd"'],
  [
    `export const bot = defineOrchestrator({
      name: 'desk', initialState: (): Desk => ({ orderId: 1 }), route: ({ state }) => (state.orderId > 0 ? 'one' : 'tow'),
      intents: { one: ({ state }) => ({ orderId: state.orderId + 1 }), two: () => 'ok' },
    });`,
    'There is no intent tow.',
  ],
  [`export const bot = defineOrchestrator<Desk>({ name: 'desk', intents: { answer: () => 'ok' } });`, 'initialState'],
  [
    `export const config: OrchestratorConfig<Desk> = { name: 'desk', intents: { answer: () => 'ok' } };`,
    'initialState',
  ],
  [`@Orchestrator<Desk>({ name: 'desk' }) export class Bot {}`, 'initialState'],
  [
    decorated(`{ name: 'desk' }`, `answer(turn: TurnContext<Desk>) { return turn.input.text; }`),
    'The state requires orderId: set initialState.',
  ],
  [
    decorated(
      `{ name: 'desk', initialState: () => ({ orderId: '' }) }`,
      `answer(turn: TurnContext<Desk>) { return turn.input.text; }`,
    ),
    'The state of the orchestrator has another type of orderId.',
  ],
  [
    `interface Texts { orderId: string }
    @Orchestrator<Desk>({ name: 'desk', initialState: () => ({ orderId: 0 }) }) export class Bot {
      @Intent() answer({ state }: TurnContext<Texts>) { return state.orderId; }
    }`,
    'The state of the orchestrator has another type of orderId.',
  ],
  [
    decorated(
      `{ name: 'desk', initialState: () => ({ order: 7 }) }`,
      `answer(turn: TurnContext<Desk>) { return turn.input.text; }`,
    ),
    'The state of the orchestrator has no key orderId.',
  ],
  [
    `@Orchestrator({ name: 'desk' }) export class Bot {
      @Route() route({ state }: TurnContext<Desk>) { return state.orderId > 0 ? 'answer' : END_TURN; }
      @Intent() answer() { return 'ok'; }
    }`,
    'The state requires orderId: set initialState.',
  ],
  [routedClass(`route() { return 7; }`), NOT_A_ROUTE],
  [routedClass(`route() {}`), NOT_A_ROUTE],
  [routedClass(`async route(turn: TurnContext) { return turn.turnIndex > 0 ? 'status' : undefined; }`), NOT_A_ROUTE],
  [routedClass(`route() { return { intent: 'status' }; }`), NOT_A_ROUTE],
  [routedClass(`route() { return { intents: 7 }; }`), NOT_A_ROUTE],
  [routedClass(`route() { return [1]; }`), NOT_A_ROUTE],
  [routedClass(`*route() { yield 'status'; }`), NOT_A_ROUTE],
  [inTurn(`await turn.step('now', () => new Date());`), 'The value cannot be stored as JSON.'],
  [
    inTurn(`await turn.step('now', async () => ({ order: { at: new Date() } }));`),
    'The value.order.at cannot be stored',
  ],
  [inTurn(`await turn.step('all', () => new Map([['a', 1]]));`), 'The value cannot be stored as JSON.'],
  [
    inTurn(`await turn.tools.use('search', 'call-1', () => ({ at: new Date() }));`),
    'The value.at cannot be stored as JSON.',
  ],
  [inTurn(`await turn.step('all', () => [1n]);`), 'The value[] cannot be stored as JSON.'],
  [inTurn(`await turn.step('work', () => ({ later: () => 7 }));`), 'The value.later cannot be stored as JSON.'],
  [
    inTurn(`await turn.step('a', async ({ step }) => { await step('b', () => new Date()); });`),
    'The value cannot be stored as JSON.',
  ],
  [
    inTurn(`await turn.emit({ type: 'progress', data: { at: new Date() } });`),
    'The value.at cannot be stored as JSON.',
  ],
  [inTurn(`await turn.emit({ type: 'progress', data: new Set([1]) });`), 'The value cannot be stored as JSON.'],
  [
    inTurn(
      `const event = turn.attempt > 1 ? { type: 'a', data: 1 } : { type: 'b', data: new Date() }; await turn.emit(event);`,
    ),
    'The value cannot be stored as JSON.',
  ],
  [inTurn(`await turn.emit({ type: 'settled' });`), 'The type settled is reserved.'],
  [inTurn(`await turn.emit({ type: 'waiting', data: 7 });`), 'The type waiting is reserved.'],
  [inTurn(`await turn.emit({ type: 'attempt', data: { attempt: 1 } });`), 'The type attempt is reserved.'],
  [
    `export const session = sessions.create({ userId: 'ann', metadata: { since: new Date() } });`,
    'The value.since cannot be stored as JSON.',
  ],
  [
    `export const session = sessions.getOrCreate({ id: 's1', userId: 'ann', metadata: { tags: new Set(['a']) } });`,
    'The value.tags cannot be stored as JSON.',
  ],
  [
    `export const session = sessions.updateMetadata('s1', { since: new Date() });`,
    'The value.since cannot be stored as JSON.',
  ],
  [
    withData(`if (data && 'total' in data) { const text: string = data.total; return text; } return 'none';`),
    'not assignable',
  ],
  [withData(`return data && 'lines' in data ? data.lines.total : undefined;`), 'total'],
  [withData(`return data?.price;`), 'price'],
  [
    withData(`for await (const event of bot.stream('hi', { sessionId: 's1' })) {
      if (event.type === 'delta') console.log(event.data.length);
    } return data;`),
    'length',
  ],
  [withData(`return (await bot.stream('hi', { sessionId: 's1' }).result).data?.price ?? data;`), 'price'],
  [withData(`return (await bot.resume('s1'))?.data?.price ?? data;`), 'price'],
  [
    withHandle(
      `const { data } = await bot.execute('hi', options); return data === null || data === undefined ? data : data.total;`,
    ),
    'total',
  ],
]);

const MORE_CORRECT = withTitles([
  `type Event = { type: 'delta'; data: { text: string } } | { type: 'tool'; data: { name: string } };
  export const send = (turn: TurnContext, event: Event) => turn.emit(event);`,
  `export const logged = (turn: TurnContext): TurnContext => ({ ...turn, emit: async (event) => turn.emit(event) });`,
  `export const timed = async <T>(turn: TurnContext, work: () => Promise<T>): Promise<T> =>
    (await turn.step<unknown>('timed', work)) as T;`,
  `declare const isOpen: boolean;
  export const bot = defineOrchestrator({
    name: 'desk', route: () => 'a', intents: { a: () => 'ok', ...(isOpen ? { b: () => 'ok' } : {}) },
  });`,
  decorated(
    `{ name: 'desk', initialState: () => ({ cart: { mode: 'open', coupon: null } }) }`,
    `answer({ state }: TurnContext<{ cart: { mode: 'open' | 'closed'; coupon: string | null } }>) { return state.cart.mode; }`,
  ),
  routedClass(`route() { return 'refund'; }`),
  routedClass(`route(turn: TurnContext) { return turn.turnIndex > 0 ? 'status' : 'refund'; }`),
  routedClass(`async route(turn: TurnContext) { return turn.turnIndex > 0 ? END_TURN : ['status', 'refund']; }`),
  routedClass(`route() { return END_TURN; }`),
  routedClass(`route() { return { intents: ['status'], reasoning: 'because', raw: { any: 1 } }; }`),
  routedClass(`route(turn: TurnContext): RouteDecision { return turn.input.text; }`),
  routedClass(`route(): never { throw new Error('no'); }`),
  routedClass(`route(): any { return 7; }`),
  `export const named = (): MethodDecorator => Route();`,
  routed(`route: () => 'refund'`),
  routed(`route: ({ input }) => input.text`),
  routed(`route: async (turn) => (turn.turnIndex > 0 ? END_TURN : ['status', 'refund'])`),
  routed(`route: () => ({ intents: ['status'], reasoning: 'because', raw: { any: 1 } })`),
  routed(`route: (): RouteDecision => 'anything'`),
  routed(`route: (): never => { throw new Error('no'); }`),
  routed(`route: () => 'status', iterate: true, initialIntent: 'refund', evaluate: () => true`),
  `const intents: Record<string, () => string> = {};
  export const bot = defineOrchestrator({ name: 'desk', route: () => 'any', intents });`,
  `export const from = (config: OrchestratorConfig) => defineOrchestrator(config);`,
  `const config: OrchestratorConfig<Desk> = {
    name: 'desk', initialState: () => ({ orderId: 0 }), intents: { answer: ({ state }) => ({ orderId: state.orderId + 1 }) },
  };
  export const bot = defineOrchestrator(config);`,
  `export const named = <State extends object>(config: OrchestratorConfig<State>) => defineOrchestrator<State>(config);`,
  `export const bot = defineOrchestrator<{ note?: string }>({ name: 'desk', intents: { answer: ({ state }) => state.note } });`,
  `export const bot = defineOrchestrator({
    name: 'desk', initialState: (): Desk => ({ orderId: 0 }), intents: { answer: ({ state }) => ({ orderId: state.orderId + 1 }) },
  });`,
  decorated(`{ name: 'desk' }`, `answer({ state }: TurnContext<{ note?: string }>) { return state.note; }`),
  decorated(`{ name: 'desk' }`, `answer(turn: TurnContext) { return { any: turn.input.text }; }`),
  decorated(
    `{ name: 'desk', initialState: () => ({ orderId: 0, mode: 'open' }) }`,
    `answer({ state }: TurnContext<Desk>) { return state.mode; }`,
  ),
  decorated(
    `{ name: 'desk', initialState: () => ({ orderId: 0, lines: [], note: null }) }`,
    `answer({ state }: TurnContext<{ orderId: number; lines: string[]; note: string | null }>) { return state.note ?? ''; }`,
  ),
  `@Orchestrator<Desk>({ name: 'desk', initialState: () => ({ orderId: 0 }) }) export class Bot {
    @Route() route({ state }: TurnContext<Desk>) { return state.orderId > 0 ? 'answer' : END_TURN; }
    @Intent() answer({ state }: TurnContext<Pick<Desk, 'note'>>) { return state.note; }
    @Evaluate() done({ state }: TurnContext<Desk>) { return state.orderId > 0; }
    helper(orderId: number) { return orderId; }
  }`,
  `import { applyDecorators, SetMetadata } from '@nestjs/common';
  const Audited = (name: string) => applyDecorators(Orchestrator({ name }), SetMetadata('audited', true));
  @Audited('desk') export class Bot { @Intent() answer() { return 'ok'; } }`,
  `export const named = (name: string): ClassDecorator => Orchestrator({ name });`,
  inTurn(`const { id }: Order = await turn.step('load', (): Order => ({ id: 7, lines: [] })); return id;`),
  inTurn(
    `const tree = await turn.step('load', async (): Promise<Tree> => ({ name: 'a', parts: [] })); return tree.parts;`,
  ),
  inTurn(`await turn.step('notify', () => {}); await turn.step('notify', async () => undefined);`),
  inTurn(`const value: JsonValue = await turn.step('ask', (): JsonValue => JSON.parse(text)); return value;`),
  inTurn(`return await turn.step('ask', async ({ key, step }) => step('inner', () => [key, 7, null]));`),
  inTurn(`const found: unknown = await turn.step('ask', (): unknown => JSON.parse(text)); return found;`),
  inTurn(`return (await turn.step('ask', () => JSON.parse(text))).any;`),
  inTurn(`await turn.emit({ type: 'progress' }); await turn.emit({ type: text, data: { done: 0.5, of: ['a'] } });`),
  inTurn(`const order: Order = { id: 1, lines: [] }; await turn.emit({ type: 'order', data: order });`),
  inTurn(`const event: { type: string; data?: unknown } = { type: text }; await turn.emit(event);`),
  `export const session = sessions.create({ userId: 'ann', metadata: { plan: 'pro', order: { id: 7 } as Order } });`,
  `export const session = (metadata: Record<string, unknown>) => sessions.create({ userId: 'ann', metadata });`,
  `export const session = sessions.create({ userId: 'ann' });`,
  `export const session = sessions.updateMetadata('s1', { plan: undefined, seats: 3 });`,
  withData(`return data && 'total' in data ? data.total.toFixed(2) : data?.lines.join(', ');`),
  withData(`for await (const event of bot.stream('hi', { sessionId: 's1' })) {
    if (event.type === 'delta') console.log(event.data.text.length);
    if (event.type === 'settled') console.log(event.data.status);
  } return data;`),
  withHandle(
    `const { data } = await bot.execute('hi', options); const value: JsonValue | undefined = data; return value;`,
  ),
  withHandle(
    `for await (const { data } of bot.stream('hi', options)) { const value: JsonValue = data; console.log(value); }`,
  ),
  `export class Bot { @Intent() answer(): TurnOutcome<Desk> { return reply('ok', { data: { total: 1 } }); } }
  export const value: DataOf<typeof Bot> = ['anything', { that: 'is JSON' }];`,
  `export class Bot { @Intent() answer(): TurnOutcome<Desk, { total: number }> { return reply('ok', { data: { total: 1 } }); } }
  export const value: DataOf<typeof Bot> = { total: 1 };`,
  `export class Bot { @Intent() answer() { return reply('ok'); } }
  export async function ask(bot: OrchestratorHandle<Desk, DataOf<typeof Bot>>): Promise<undefined> {
    return (await bot.execute('hi', { sessionId: 's1' })).data;
  }`,
  inObject(`({ turnIndex }) => reply('ok', { data: { total: turnIndex }, state: { orderId: turnIndex } })`),
  inObject(`({ turnIndex }) => turnOutcome({ data: [turnIndex], state: { orderId: turnIndex } })`),
  `export const ask = async (bot: OrchestratorHandle<Desk, { total: number }>): Promise<number | undefined> =>
    (await bot.execute('hi', { sessionId: 's1', state: { orderId: 7 } })).data?.total;`,
]);

describe('the types of orchestrators and options', () => {
  let problemsOf: (code: string) => string[];

  beforeAll(() => {
    problemsOf = compile([...MISTAKES, ...MORE_MISTAKES, ...CORRECT, ...MORE_CORRECT].map(({ code }) => code));
  }, 120_000);

  it.each(MISTAKES)('DAY-16 rejects $shown', rejects);
  it.each(MORE_MISTAKES)('DAY-05 rejects $shown', rejects);
  it.each(CORRECT)('DAY-16 accepts $shown', accepts);
  it.each(MORE_CORRECT)('DAY-05 accepts $shown', accepts);

  function rejects({ code, message }: Example): void {
    const problems = problemsOf(code);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
    expect(problems[0]).not.toContain('No overload matches');
  }

  function accepts({ code }: Example): void {
    expect(problemsOf(code)).toEqual([]);
  }
});

/** Code, and a part of the message of the compiler if it rejects the code. */
interface Example {
  readonly code: string;
  readonly message: string;
  readonly shown: string;
}

function withTitles(examples: readonly (string | readonly [string, string])[]): Example[] {
  return examples.map((example) => {
    const [code, message] = typeof example === 'string' ? [example, ''] : example;
    return { code, message, shown: onOneLine(code) };
  });
}

function onOneLine(code: string): string {
  return code.replaceAll(/\s+/g, ' ');
}

/** Compiles each program as a module of its own. @returns a function that returns the compiler's messages for a program */
function compile(programs: readonly string[]): (code: string) => string[] {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(PROJECT, 'tsconfig.json'), (file) => ts.sys.readFile(file)).config,
    { ...ts.sys, readDirectory: () => [] },
    PROJECT,
  );
  const files = new Map(programs.map((code, n) => [join(PROJECT, `mistake-${n}.ts`), IMPORTS + code]));
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (name, languageVersion, ...more) => {
    const text = files.get(name);
    return text === undefined
      ? read(name, languageVersion, ...more)
      : ts.createSourceFile(name, text, languageVersion, true);
  };
  const exists = host.fileExists.bind(host);
  host.fileExists = (name) => files.has(name) || exists(name);
  const program = ts.createProgram(
    [...files.keys()],
    { ...options, noUnusedLocals: false, noUnusedParameters: false },
    host,
  );
  return (code) => {
    const source = program.getSourceFile([...files.keys()][programs.indexOf(code)]);
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      ({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'),
    );
  };
}
