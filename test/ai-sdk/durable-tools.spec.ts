import { isDeepStrictEqual } from 'node:util';
import { jest } from '@jest/globals';
import {
  PermanentTurnError,
  reply,
  TurnCancelledError,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import type * as ai6 from 'ai';
import { z } from 'zod';
import { approvalSignal } from '../../lib/chat/user-signals.js';
import { durableModel } from '../../lib/ai-sdk/durable-model.js';
import { durableTools, type DurableToolsOptions } from '../../lib/ai-sdk/durable-tools.js';
import { idempotencyKeyOf } from '../../lib/ai-sdk/tool-call.js';
import { INTERRUPTED } from '../../lib/ledger/interrupted-result.js';
import { type Kill, KillableStores } from '../../lib/testing/chat/killable-stores.js';
import { eventually } from '../support/eventually.js';
import { gate, LIVE_STORES, rejection } from '../support/running-application.js';
import { type Chat, CHAT_SDKS, startChat } from './fixtures/chat.js';
import { failUntil } from './fixtures/desk.js';
import { type Answer, type ModelOptions, type ScriptedModel } from './fixtures/models.js';

type Calls = NonNullable<Answer['calls']>;
type Tools = ai6.ToolSet;

const inputSchema = z.object({ id: z.string() });
const find = (id: string) => ({ id: `find-${id}`, name: 'find', input: { id } });

/** Returns the results of tools in the prompt of a model call. */
function resultsIn({ prompt }: ModelOptions): unknown[] {
  return prompt.flatMap(({ role, content }) =>
    role === 'tool' ? content.flatMap((part) => (part.type === 'tool-result' ? [part.output] : [])) : [],
  );
}

describe.each(CHAT_SDKS)('durableTools with $name', ({ name: version, sdk, scripted }) => {
  /** Calls these tools, and then answers. */
  function calling(...calls: Calls): ScriptedModel {
    return scripted((_, { prompt }) => (prompt.at(-1)?.role === 'tool' ? { text: 'Done.' } : { calls }));
  }

  function settings(turn: TurnContext, { model }: ScriptedModel, tools: Tools, own?: DurableToolsOptions) {
    const options = { model: durableModel(turn, model), tools: durableTools(turn, tools, own), maxRetries: 0 };
    return { ...options, prompt: turn.input.text, stopWhen: sdk.stepCountIs(5) };
  }

  async function generate(
    turn: TurnContext,
    scripted: ScriptedModel,
    tools: Tools,
    own?: DurableToolsOptions,
  ): Promise<string> {
    return (await sdk.generateText(settings(turn, scripted, tools, own))).text;
  }

  async function stream(
    turn: TurnContext,
    scripted: ScriptedModel,
    tools: Tools,
    own?: DurableToolsOptions,
  ): Promise<string> {
    const result = sdk.streamText({ ...settings(turn, scripted, tools, own), onError: () => {} });
    for await (const part of result.fullStream) if (part.type === 'error') throw part.error;
    return result.text;
  }

  /** The message of an error that the model reads. */
  const errorText = (message: string) => ({
    type: 'error-text',
    value: version === 'ai 6' ? message : `Error: ${message}`,
  });

  /** The rejection of a call by the plan, which the model reads. */
  const refusalText = (message: string) => ({
    type: 'error-text',
    value: version === 'ai 6' ? message : `ToolNotAllowedError: ${message}`,
  });

  it('FIX-64 rejects arguments with the key __proto__ with an error for the model, and continues', async () => {
    const execute = jest.fn(({ id }: { id: string }) => id);
    const input = JSON.parse('{"id":"7","list":[{"__proto__":1}]}') as { id: string };
    const model = scripted(() => ({ text: 'Done.' }));
    const chat = await startChat(async (turn) => {
      const tools = durableTools(turn, { find: sdk.tool({ inputSchema, execute }) });
      const options = { toolCallId: 'find-7', messages: [] } as never;
      const { message } = await rejection((async () => tools.find.execute?.(input, options))(), Error);
      return reply(`${message} ${await generate(turn, model, {})}`);
    });

    expect(await chat.send('hi')).toMatchObject({
      reply:
        'input.list[0].__proto__ is a reserved key, which cannot be stored as JSON. Rename or remove the key. Done.',
    });
    expect(execute).not.toHaveBeenCalled();
  });

  describe.each(Object.entries({ generate, stream }))('in a loop that can %s', (_, loop) => {
    it.each(LIVE_STORES)('AIS-03 runs each call once, although attempts fail, over $name', async ({ open }) => {
      const model = calling(find('7'), find('8'));
      const keys: string[] = [];
      const tool = sdk.tool({
        inputSchema,
        execute: ({ id }, options) => {
          keys.push(idempotencyKeyOf(options));
          return `order ${id} has shipped`;
        },
      });
      const chat = await startChat(
        async (turn) => {
          const text = await loop(turn, model, { find: tool });
          failUntil(3, turn);
          return reply(text);
        },
        { adapter: open() },
      );
      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(new Set(keys).size).toBe(2);
      expect(keys).toHaveLength(2);
      expect(model.asked).toHaveLength(2);
      const values = ['order 7 has shipped', 'order 8 has shipped'];
      expect(resultsIn(model.asked[1])).toEqual(values.map((value) => ({ type: 'text', value })));
    });

    it.each(LIVE_STORES)('AIS-03 gives the model the same error in every attempt, over $name', async ({ open }) => {
      const model = calling(find('7'), find('8'));
      let executed = 0;
      const tool = sdk.tool({
        inputSchema,
        execute: ({ id }) => {
          executed += 1;
          if (id === '7') throw new Error(`There is no order 7. This is call ${executed}.`);
          return 'found';
        },
      });
      const texts: string[] = [];
      const chat = await startChat(
        async (turn) => {
          texts.push(await loop(turn, model, { find: tool }));
          failUntil(3, turn);
          return reply('');
        },
        { adapter: open() },
      );
      await chat.send('hi');
      expect(texts).toEqual(['Done.', 'Done.', 'Done.']);
      expect(executed).toBe(2);
      expect(model.asked).toHaveLength(2);
      expect(resultsIn(model.asked[1])).toEqual([
        errorText('There is no order 7. This is call 1.'),
        { type: 'text', value: 'found' },
      ]);
    });

    it('FIX-64 lets the model read that its arguments have the key __proto__, and does not run the tool', async () => {
      const model = calling({ ...find('7'), input: JSON.parse('{"id":"7","__proto__":{"admin":true}}') as object });
      const execute = jest.fn(({ id }: { id: string }) => id);
      const tool = sdk.tool({ inputSchema, execute });
      const chat = await startChat(async (turn) => reply(await loop(turn, model, { find: tool })));

      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(resultsIn(model.asked[1])).toMatchObject([{ type: 'error-text' }]);
      expect(execute).not.toHaveBeenCalled();
    });

    it('FIX-64 gives a tool arguments with keys named like properties of every object, unchanged and once', async () => {
      const input = { id: '7', constructor: 'Team Nine', prototype: [1], toString: 'no', deep: { constructor: 1 } };
      const model = calling({ ...find('7'), input });
      const inputs: unknown[] = [];
      const tool = sdk.tool({
        inputSchema: z.looseObject({ id: z.string() }),
        execute: (given) => (inputs.push(given), 'found'),
      });
      const chat = await startChat(async (turn) => {
        const text = await loop(turn, model, { find: tool });
        failUntil(2, turn);
        return reply(text);
      });

      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(inputs).toEqual([input]);
      expect(resultsIn(model.asked[1])).toEqual([{ type: 'text', value: 'found' }]);
    });

    it('FIX-64 runs a tool once whose result has the key __proto__, and lets the model read why it is rejected', async () => {
      const model = calling(find('7'));
      const execute = jest.fn(() => JSON.parse('{"found":{"__proto__":{"admin":true}}}') as object);
      const tool = sdk.tool({ inputSchema, execute });
      const chat = await startChat(async (turn) => {
        const text = await loop(turn, model, { find: tool });
        failUntil(3, turn);
        return reply(text);
      });

      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(resultsIn(model.asked[1])).toEqual([
        errorText(
          'The result of tool find.found.__proto__ is a reserved key, which cannot be stored as JSON. Rename or remove the key.',
        ),
      ]);
      expect(execute).toHaveBeenCalledTimes(1);
    });

    it('AIS-03 fails the turn with a permanent error, and does not ask the model', async () => {
      const model = calling(find('7'));
      const tool = sdk.tool({
        inputSchema,
        execute: (): string => {
          throw new PermanentTurnError('The account is closed.');
        },
      });
      const chat = await startChat(async (turn) => reply(await loop(turn, model, { find: tool })));
      const { failure } = await rejection(chat.send('hi'), TurnFailedError);
      expect(failure).toMatchObject({ name: 'PermanentTurnError', message: 'The account is closed.' });
      expect(model.asked).toHaveLength(1);
    });

    it('FIX-63 runs the calls of every answer if the provider numbers them from 0, once in all attempts', async () => {
      const again = (id: string) => ({ ...find(id), id: '0' });
      const model = scripted((call) => (call < 4 ? { calls: [again(['7', '8', '8'][call - 1])] } : { text: 'Done.' }));
      const keys: string[] = [];
      const tool = sdk.tool({
        inputSchema,
        execute: ({ id }, options) => {
          keys.push(idempotencyKeyOf(options));
          return `${id} ${keys.length}`;
        },
      });
      const chat = await startChat(async (turn) => {
        const text = await loop(turn, model, { find: tool });
        failUntil(3, turn);
        return reply(text);
      });
      await chat.send('hi');
      expect(new Set(keys).size).toBe(3);
      expect(keys).toHaveLength(3);
      expect(resultsIn(model.asked[3])).toEqual(['7 1', '8 2', '8 3'].map((value) => ({ type: 'text', value })));
    });

    it('FIX-63 takes ids of any length, and passes them through', async () => {
      const id = `call_${'x'.repeat(1000)}`;
      const model = calling({ ...find('7'), id });
      const seen: unknown[] = [];
      const tool = sdk.tool({ inputSchema, execute: (_, { toolCallId }) => seen.push(toolCallId) });
      const chat = await startChat(async (turn) => {
        const text = await loop(turn, model, { find: tool });
        failUntil(2, turn);
        return reply(text);
      });
      await chat.send('hi');
      expect(seen).toEqual([id]);
    });

    it("AIS-03 gives the model the plan's rejection as error in every attempt", async () => {
      const model = calling(find('7'), { id: 'refund-7', name: 'refund', input: { id: '7' } });
      const executed: string[] = [];
      const tool = (name: string) => sdk.tool({ inputSchema, execute: (): number => executed.push(name) });
      const texts: string[] = [];
      const chat = await startChat(
        async (turn) => {
          texts.push(await loop(turn, model, { find: tool('find'), refund: tool('refund') }));
          failUntil(2, turn);
          return reply('');
        },
        { definition: { steps: [{ name: 'search', isDefault: true, availableTools: { allowed: ['find'] } }] } },
      );
      await chat.send('hi');
      expect(texts).toEqual(['Done.', 'Done.']);
      expect(executed).toEqual(['find']);
      expect(resultsIn(model.asked[1])).toEqual([
        { type: 'json', value: 1 },
        refusalText('The tool refund is not allowed in step search. Allowed now: find.'),
      ]);
    });

    it('AIS-03 FIX-20 rejects a parallel call that the plan does not allow after the first one', async () => {
      const pay = (id: string) => ({ id: `pay-${id}`, name: 'pay', input: { id } });
      const model = calling(pay('7'), pay('8'));
      const executed: string[] = [];
      const tool = sdk.tool({ inputSchema, execute: ({ id }) => (executed.push(id), `paid ${id}`) });
      const chat = await startChat(
        async (turn) => {
          const text = await loop(turn, model, { pay: tool });
          failUntil(2, turn);
          return reply(text);
        },
        {
          definition: {
            steps: [
              { name: 'open', isDefault: true },
              { name: 'paid', conditions: [{ type: 'tool_used', value: 'pay' }], availableTools: { denied: ['pay'] } },
            ],
          },
        },
      );
      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(executed).toEqual(['7']);
      expect(model.asked).toHaveLength(2);
      // The SDK may list parallel results in the order in which they arrive.
      expect(new Set(resultsIn(model.asked[1]))).toEqual(
        new Set([
          { type: 'text', value: 'paid 7' },
          refusalText('The tool pay is not allowed in step paid. Allowed now: *, but not pay.'),
        ]),
      );
    });

    it('AIS-03 FIX-20 runs parallel calls one after the other during a sequence', async () => {
      const model = calling(...['search', 'book', 'quote'].map((name) => ({ id: name, name, input: { id: '7' } })));
      const log: string[] = [];
      const tool = (name: string) =>
        sdk.tool({
          inputSchema,
          execute: async () => {
            log.push(`${name} begins`);
            await new Promise((resolve) => setImmediate(resolve));
            log.push(`${name} ends`);
            return name;
          },
        });
      const tools = { search: tool('search'), quote: tool('quote'), book: tool('book') };
      const chat = await startChat(
        async (turn) => {
          const text = await loop(turn, model, tools);
          failUntil(2, turn);
          return reply(text);
        },
        { definition: { steps: [{ name: 'booking', isDefault: true, sequence: ['search', 'quote', 'book'] }] } },
      );
      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(log).toEqual(['search begins', 'search ends', 'quote begins', 'quote ends']);
      expect(model.asked).toHaveLength(2);
      expect(new Set(resultsIn(model.asked[1]))).toEqual(
        new Set([
          { type: 'text', value: 'search' },
          { type: 'text', value: 'quote' },
          refusalText('The tool book is not allowed in step booking. Allowed now: quote.'),
        ]),
      );
    });

    it('AIS-03 runs parallel calls in parallel', async () => {
      const model = calling(find('7'), find('8'));
      const started = gate();
      const executed: string[] = [];
      const tool = sdk.tool({
        inputSchema,
        execute: async ({ id }) => {
          if (id === '8') started.open();
          await started.pass();
          return executed.push(id);
        },
      });
      const chat = await startChat(async (turn) => reply(await loop(turn, model, { find: tool })));
      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(executed).toHaveLength(2);
    });

    it('AIS-03 waits for approvals, in any order and across attempts', async () => {
      const model = calling(find('7'), find('8'), find('9'));
      const executed: string[] = [];
      const tool = sdk.tool({ inputSchema, needsApproval: true, execute: ({ id }) => executed.push(id) });
      const chat = await startChat(async (turn) => {
        const text = await loop(turn, model, { find: tool });
        failUntil(2, turn);
        return reply(text);
      });
      const { turns } = chat.app;
      const id = await chat.submit('hi');
      await waitsFor(chat, id, ['find-7', 'find-8', 'find-9']);
      await turns.signal(id, approvalSignal('find-9'), { approved: false, reason: 'Not this one' });
      expect(executed).toEqual([]);
      await turns.signal(id, approvalSignal('find-7'), { approved: true });
      // The answer to the last one has arrived.
      await waitsFor(chat, id, ['find-8', 'find-9']);
      await turns.signal(id, approvalSignal('find-8'), { approved: false });
      expect(await turns.result(id)).toMatchObject({ reply: 'Done.' });
      expect(executed).toEqual(['7']);
      expect(model.asked).toHaveLength(2);
      expect(resultsIn(model.asked[1])).toEqual([
        { type: 'json', value: 1 },
        errorText('The user has denied this call.'),
        errorText('The user has denied this call: Not this one'),
      ]);
    });

    it('FIX-63 asks for the approval of each call if the provider uses an id again', async () => {
      const again = (id: string) => ({ ...find(id), id: '0' });
      const model = scripted((call) => (call < 3 ? { calls: [again(`${call}`)] } : { text: 'Done.' }));
      const executed: string[] = [];
      const tool = sdk.tool({ inputSchema, needsApproval: true, execute: ({ id }) => executed.push(id) });
      const chat = await startChat(async (turn) => reply(await loop(turn, model, { find: tool })));
      const id = await chat.submit('hi');
      await waitsFor(chat, id, ['0']);
      await chat.app.turns.signal(id, approvalSignal('0'), { approved: true });
      const second = approvalSignal('0', { earlier: 1 });
      await eventually(async () => (await chat.app.turns.get(id))?.waitingFor?.signal === second);
      expect(executed).toEqual(['1']);
      await chat.app.turns.signal(id, second, { approved: false });
      expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'Done.' });
      expect(executed).toEqual(['1']);
    });

    it('AIS-03 keeps the decision of needsApproval, also if it would change', async () => {
      const model = calling(find('7'), find('8'));
      const decided: string[] = [];
      const tool = sdk.tool({
        inputSchema,
        needsApproval: ({ id }) => {
          const isFirst = !decided.includes(id);
          decided.push(id);
          return (id === '7') === isFirst;
        },
        execute: ({ id }) => id,
      });
      const chat = await startChat(async (turn) => {
        const text = await loop(turn, model, { find: tool });
        failUntil(2, turn);
        return reply(text);
      });
      const id = await chat.submit('hi');
      await waitsFor(chat, id, ['find-7']);
      await chat.app.turns.signal(id, approvalSignal('find-7'), { approved: true });
      expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'Done.' });
      expect(decided).toEqual(['7', '8']);
    });

    it('AIS-03 fails the turn if the answer to an approval is malformed', async () => {
      const model = calling(find('7'));
      const tool = sdk.tool({ inputSchema, needsApproval: true, execute: () => 'found' });
      const chat = await startChat(async (turn) => reply(await loop(turn, model, { find: tool })));
      const id = await chat.submit('hi');
      await waitsFor(chat, id, ['find-7']);
      await chat.app.turns.signal(id, approvalSignal('find-7'), 'yes');
      const { failure } = await rejection(chat.app.turns.result(id), TurnFailedError);
      expect(failure).toMatchObject({ name: 'InvalidInputError' });
      expect(model.asked).toHaveLength(1);
    });

    describe.each(LIVE_STORES)('if a worker is killed, over $name', ({ open }) => {
      /** The executions of a call by the keys of the tool, and what the model reads in the end. */
      interface Run {
        readonly keys: string[];
        result?: unknown;
      }

      /** Runs a turn with a tool for each write at which its worker can be killed. */
      async function killEverywhere(own: DurableToolsOptions | undefined, fields: object = {}): Promise<Run[]> {
        const runs = new Map<string, Run>();
        const store = new KillableStores();
        const model = scripted((_, options) => {
          const [{ content }] = options.prompt;
          const { text } = (content as { text: string }[])[0];
          if (options.prompt.at(-1)?.role !== 'tool') return { calls: [find(text)] };
          [runs.get(text)!.result] = resultsIn(options);
          return { text: 'Done.' };
        });
        const tool = {
          ...sdk.tool({
            inputSchema,
            execute: ({ id }, options) => {
              runs.get(id)!.keys.push(idempotencyKeyOf(options));
              return 'shipped';
            },
          }),
          ...fields,
        };
        const chat = await startChat(async (turn) => reply(await loop(turn, model, { find: tool }, own)), {
          adapter: store.wrap(open()),
        });
        const runTurn = async (kill?: Kill): Promise<string> => {
          const sessionId = await chat.app.session();
          runs.set(sessionId, { keys: [] });
          if (kill) store.kill(sessionId, kill);
          expect(await chat.app.turns.execute('chat', sessionId, { sessionId })).toMatchObject({ reply: 'Done.' });
          return sessionId;
        };
        const writes = store.writes(await runTurn());
        const kills = Array.from({ length: 2 * writes }, (_, at) => ({ at: 1 + (at >> 1), isStored: at % 2 === 0 }));
        await Promise.all(kills.map(runTurn));
        return [...runs.values()];
      }

      const shipped = { type: 'text', value: 'shipped' };

      it.each<[string, DurableToolsOptions | undefined, object]>([
        ['by default', undefined, {}],
        ['if the tool says so', { onInterrupted: 'report' }, { onInterrupted: 'retry' }],
      ])('AIS-31 runs an interrupted call again with the same key, %s', async (_, own, fields) => {
        const runs = await killEverywhere(own, fields);
        for (const { keys, result } of runs) {
          expect(new Set(keys).size).toBe(1);
          expect(result).toEqual(shipped);
        }
        expect(runs.filter(({ keys }) => keys.length === 2)).toHaveLength(1);
      });

      it.each<[string, DurableToolsOptions | undefined, object]>([
        ['with the option', { onInterrupted: 'report' }, {}],
        ['if the tool says so', undefined, { onInterrupted: 'report' }],
      ])('AIS-31 reports an interrupted call and never runs it twice, %s', async (_, own, fields) => {
        const runs = await killEverywhere(own, fields);
        const interrupted = runs.filter(({ result }) => !isDeepStrictEqual(result, shipped));
        // Killed after the mark was stored, or before the result was.
        expect(interrupted.map(({ keys }) => keys.length).toSorted()).toEqual([0, 1]);
        for (const { result } of interrupted) expect(result).toEqual(errorText(INTERRUPTED));
        for (const { keys } of runs) expect(keys.length).toBeLessThanOrEqual(1);
      });
    });

    it('AIS-31 does not take what an aborted tool returns for its result', async () => {
      const model = calling(find('7'));
      let executed = 0;
      const tool = sdk.tool({
        inputSchema,
        execute: (_, { abortSignal }) => {
          executed += 1;
          if (executed > 1) return 'shipped';
          return new Promise<string>((resolve) => abortSignal?.addEventListener('abort', () => resolve('half')));
        },
      });
      const chat = await startChat(async (turn) => reply(await loop(turn, model, { find: tool })), {
        turns: { timeoutMs: 300 },
      });
      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(resultsIn(model.asked.at(-1)!)).toEqual([{ type: 'text', value: 'shipped' }]);
    });

    it('AIS-31 reports a call that is interrupted in a tool of another model', async () => {
      const model = calling({ id: 'research-1', name: 'research', input: {} });
      const inner = calling(find('7'));
      let executed = 0;
      const chat = await startChat(async (turn) => {
        const lookUp = sdk.tool({
          inputSchema,
          execute: (): string => {
            executed += 1;
            // No attempt stores a permanent error, or the error of a killed process.
            throw Object.assign(new Error('killed'), { permanent: true });
          },
        });
        const research = sdk.tool({
          inputSchema: z.object({}),
          execute: () => loop(turn, inner, { find: lookUp }, { onInterrupted: 'report' }),
        });
        return reply(await loop(turn, model, { research }).catch(retried));
      });
      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(executed).toBe(1);
      expect(resultsIn(inner.asked.at(-1)!)).toEqual([errorText(INTERRUPTED)]);
    });

    it('AIS-03 stops a call with its turn, and stores no failure', async () => {
      const model = calling(find('7'));
      const started = gate();
      const stopped = gate();
      const tool = sdk.tool({
        inputSchema,
        execute: (_, { abortSignal }) => {
          started.open();
          abortSignal?.addEventListener('abort', stopped.open);
          return new Promise((__, reject) =>
            abortSignal?.addEventListener('abort', () => reject(new Error('stopped'))),
          );
        },
      });
      const chat = await startChat(async (turn) => reply(await loop(turn, model, { find: tool })));
      const id = await chat.submit('hi');
      await started.pass();
      await chat.app.turns.cancel(id);
      await rejection(chat.app.turns.result(id), TurnCancelledError);
      await stopped.pass();
      const steps = await chat.app.adapter.turns.steps(id);
      expect(steps.map((step) => step.name)).toEqual(['model call']);
    });
  });

  describe('inside of another tool', () => {
    /** A sub-agent that looks up two orders. */
    function research(turn: TurnContext, inner: ScriptedModel, lookUp: (id: string) => unknown, fail: () => void) {
      const tools = { find: sdk.tool({ inputSchema, execute: ({ id }) => lookUp(id) }) };
      const execute = async () => {
        const text = await generate(turn, inner, tools);
        fail();
        return text;
      };
      return { research: sdk.tool({ inputSchema: z.object({}), execute }) };
    }

    const outer = () => calling({ id: 'research-1', name: 'research', input: {} });
    /** Only the tools of the outer loop count. */
    const steps = [{ name: 'start', isDefault: true, availableTools: { allowed: ['research'] } }];

    it('AIS-03 runs each call once, although the outer tool runs again', async () => {
      const [model, inner] = [outer(), calling(find('7'), find('8'))];
      const executed: string[] = [];
      const chat = await startChat(
        async (turn) => {
          const lookUp = (id: string) => {
            executed.push(id);
            if (id === '8') throw new Error(`There is no order 8. This is call ${executed.length}.`);
            return 'found';
          };
          // No attempt stores a permanent error, or the error of a killed process.
          const kill = () => {
            if (turn.attempt === 1) throw Object.assign(new Error('killed'), { permanent: true });
          };
          return reply(await generate(turn, model, research(turn, inner, lookUp, kill)).catch(retried));
        },
        { definition: { steps } },
      );
      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(executed).toEqual(['7', '8']);
      expect(inner.asked).toHaveLength(2);
      expect(resultsIn(inner.asked[1])).toEqual([
        { type: 'text', value: 'found' },
        errorText('There is no order 8. This is call 2.'),
      ]);
      expect(model.asked).toHaveLength(2);
    });

    it('AIS-03 fails the turn with a permanent error', async () => {
      const [model, inner] = [outer(), calling(find('7'))];
      const chat = await startChat(async (turn) => {
        const lookUp = () => {
          throw new PermanentTurnError('The account is closed.');
        };
        return reply(
          await generate(
            turn,
            model,
            research(turn, inner, lookUp, () => {}),
          ),
        );
      });
      const { failure } = await rejection(chat.send('hi'), TurnFailedError);
      expect(failure).toMatchObject({ message: 'The account is closed.' });
      expect([model.asked.length, inner.asked.length]).toEqual([1, 1]);
    });
  });

  it.each<[string, () => unknown, unknown]>([
    ['a date', () => new Date(0), '1970-01-01T00:00:00.000Z'],
    ['an entity', () => new Order('7'), { id: '7', shipped: '1970-01-01T00:00:00.000Z' }],
    ['nothing', () => undefined, null],
    ['a promise', () => Promise.resolve({ id: '7' }), { id: '7' }],
    ['an iteration', () => preliminary('searching', 'found'), 'found'],
  ])('AIS-03 stores a result that is %s as JSON, which the model gets in every attempt', async (_, execute, result) => {
    const model = calling(find('7'));
    const outputs: unknown[] = [];
    const tool = sdk.tool({ inputSchema, execute: execute });
    const chat = await startChat(async (turn) => {
      const { steps } = await sdk.generateText(settings(turn, model, { find: tool }));
      outputs.push(...steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output as unknown)));
      failUntil(2, turn);
      return reply('');
    });
    await chat.send('hi');
    expect(outputs).toEqual([result, result]);
  });

  it('AIS-03 passes on input that a schema has transformed', async () => {
    const model = calling(find('7'));
    const inputs: unknown[] = [];
    const tool = sdk.tool({
      inputSchema: z.object({ id: z.string().transform((id) => BigInt(id)) }),
      execute: ({ id }) => (inputs.push(id), 'found'),
    });
    const chat = await startChat(async (turn) => {
      // Models with a bigint in the prompt do not exist: the loop ends after the call.
      await sdk.generateText({ ...settings(turn, model, { find: tool }), stopWhen: sdk.stepCountIs(1) });
      failUntil(2, turn);
      return reply('');
    });
    await chat.send('hi');
    expect(inputs).toEqual([7n]);
  });

  it('AIS-03 keeps the tool as `this`', async () => {
    const model = calling(find('7'));
    const tool = {
      ...sdk.tool({ inputSchema, execute: () => '' }),
      prefix: 'order',
      execute(this: { prefix: string }, { id }: { id: string }) {
        return `${this.prefix} ${id}`;
      },
    };
    const chat = await startChat(async (turn) => reply(await generate(turn, model, { find: tool })));
    await chat.send('hi');
    expect(resultsIn(model.asked[1])).toEqual([{ type: 'text', value: 'order 7' }]);
  });

  it('AIS-31 rejects unknown values of `onInterrupted`', () => {
    const turn = {} as TurnContext;
    const find = { ...sdk.tool({ inputSchema, execute: () => '' }), onInterrupted: 'ignore' };
    expect(() => durableTools(turn, { find })).toThrow('tools.find.onInterrupted must be retry or report.');
    const options = { onInterrupted: 'ignore' } as unknown as DurableToolsOptions;
    expect(() => durableTools(turn, {}, options)).toThrow('options.onInterrupted must be retry or report.');
  });

  it('AIS-03 leaves tools without `execute` unchanged', () => {
    const turn = {} as TurnContext;
    const tools = { ask: sdk.tool({ inputSchema, needsApproval: true }) };
    expect(durableTools(turn, tools)).toEqual(tools);
  });
});

describe('idempotencyKeyOf', () => {
  it('AIS-03 rejects options of another tool', () => {
    expect(() => idempotencyKeyOf({ toolCallId: 'find-7' })).toThrow('must be the second argument of `execute`');
  });
});

// Compiled only: tools keep their types.
void ((turn: TurnContext<{ count: number }>, given: { a: ai6.Tool<string, number> }) => {
  const tools: { a: ai6.Tool<string, number> } = durableTools(turn, given);
  return tools;
});

class Order {
  readonly shipped = new Date(0);

  constructor(readonly id: string) {}
}

async function* preliminary(...values: string[]) {
  for (const value of values) yield await Promise.resolve(value);
}

/** Fails the attempt, but not the turn. */
function retried(error: unknown): never {
  throw new Error('The attempt fails.', { cause: error });
}

/** Waits until the turn waits for the approval of these calls, in their order. */
async function waitsFor({ app: { turns } }: Chat, id: string, toolCallIds: readonly string[]): Promise<void> {
  await eventually(async () => {
    const { signal, others = [] } = (await turns.get(id))?.waitingFor ?? {};
    return [signal, ...others].join() === toolCallIds.map((each) => approvalSignal(each)).join();
  });
}
