import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type OrchestrationCondition, OrchestrationStateManager, type OrchestrationStep } from 'nestjs-agent-sessions';
import { AppModule } from '../../sample/03-tool-sequences/app.module.js';
import { AIRLINE_PLAN } from '../../sample/03-tool-sequences/airline-plan.js';
import { FIXTURE } from '../../sample/03-tool-sequences/fixture.js';
import { planDiagram } from '../../sample/03-tool-sequences/plan-diagram.js';
import { type ReplayedTurn, ConversationRunner } from '../../sample/03-tool-sequences/conversation-runner.js';
import { readConversations } from '../../sample/03-tool-sequences/read-conversations.js';
import { count } from '../../sample/03-tool-sequences/report.js';

const PROJECT = join(import.meta.dirname, '../..');
const AIRLINE = join(PROJECT, '../shared/data/airline-agent.jsonl');

describe('an agent with a plan of steps', () => {
  let app: INestApplicationContext;

  beforeAll(async () => {
    app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  });

  afterAll(() => app.close());

  it('ORC-25 ORC-28 acts when it has looked up who it is and was told yes', async () => {
    const turns = await run(0);

    expect(turns.map(({ from, to }) => `${from} -> ${to}`)).toEqual(['identify -> look-up', 'act -> report']);
    expect(calls(turns)).toEqual([
      'get_user_details used in identify',
      'get_reservation_details used in look-up',
      'cancel_reservation used in act',
    ]);
  });

  it('ORC-27 ORC-28 ORC-29 refuses what was not confirmed, and a second action after one yes', async () => {
    const turns = await run(1);

    expect(turns.map(({ from, to }) => `${from} -> ${to}`)).toEqual([
      'identify -> identify',
      'identify -> look-up',
      'look-up -> look-up',
      'act -> report',
    ]);
    expect(calls(turns)).toEqual([
      'cancel_reservation refused in identify',
      'get_user_details used in identify',
      'get_reservation_details used in look-up',
      'cancel_reservation refused in look-up',
      'cancel_reservation refused in look-up',
      'cancel_reservation used in act',
      'think used in report',
      'confirm failed in report',
      'send_certificate refused in report',
    ]);
    expect(turns[0].results[0].content).toBe(
      'The tool cancel_reservation is not allowed in step identify. Allowed now: get_user_details, think, ' +
        'transfer_to_human_agents.',
    );
  });

  it('ORC-29 a failed action does not use up the yes, and nothing follows a transfer', async () => {
    const turns = await run(2);

    expect(turns[1]).toMatchObject({ from: 'act', to: 'transferred' });
    expect(calls(turns).slice(2)).toEqual([
      'book_reservation failed in act',
      'transfer_to_human_agents used in act',
      'book_reservation refused in transferred',
    ]);
  });

  it('ORC-24 offers the model what the step allows', async () => {
    const [first, second] = await run(0);

    expect(first.allowed).toEqual(['get_user_details', 'think', 'transfer_to_human_agents']);
    expect(second.allowed).toEqual(expect.arrayContaining(['cancel_reservation', 'get_reservation_details', 'think']));
  });

  it('ORC-01 keeps in the state what the turns have done', async () => {
    const [{ sessionId }] = await run(0);

    const state = await app.get(OrchestrationStateManager).getState(sessionId);

    expect(state).toMatchObject({ activeStep: 'report', progress: { identify: 0, 'look-up': 0, act: 0 } });
    expect(state?.toolHistory.map(({ tool, step }) => [tool, step])).toEqual([
      ['get_user_details', 'identify'],
      ['get_reservation_details', 'look-up'],
      ['cancel_reservation', 'act'],
    ]);
  });

  it('ORC-28 the sample runs with its start command, and reports missing recorded conversations', () => {
    const main = join(process.cwd(), 'build/sample/03-tool-sequences/main.js');

    const printed = execFileSync(process.execPath, [main, 'nowhere.jsonl'], { encoding: 'utf8', timeout: 60_000 });

    expect(printed).toContain(
      '  user    Yes!\n  step    act; allowed: all tools\n  used    cancel_reservation, in act\n' +
        '  used    think, in report\n  failed  confirm: There is no tool confirm.\n' +
        '  refused send_certificate: The tool send_certificate is not allowed in step report. Allowed now: *, but not ',
    );
    expect(printed).toContain('nowhere.jsonl does not exist.');
  });

  const recorded = existsSync(AIRLINE) ? readConversations(AIRLINE) : null;
  const title = 'ORC-25 ORC-28 what the plan refuses of fifty recorded conversations';
  if (recorded) {
    it(title, async () => {
      const turns: ReplayedTurn[] = [];
      for (const conversation of recorded) turns.push(...(await app.get(ConversationRunner).run(conversation)));

      expect(turns).toHaveLength(410);
      expect(count(turns)).toEqual({
        get_user_details: { used: 30 },
        get_reservation_details: { used: 68, 'refused in identify': 25 },
        search_direct_flight: { used: 23, 'refused in identify': 15 },
        search_onestop_flight: { used: 7, 'refused in identify': 2 },
        list_all_airports: { 'refused in identify': 2 },
        calculate: { used: 17, 'refused in identify': 2 },
        think: { used: 24 },
        book_reservation: { used: 4, failed: 4, 'refused in look-up': 2 },
        update_reservation_flights: {
          used: 9,
          'refused in identify': 12,
          'refused in look-up': 7,
          'refused in report': 1,
        },
        update_reservation_baggages: { 'refused in identify': 2 },
        update_reservation_passengers: { 'refused in identify': 1 },
        cancel_reservation: { used: 4, 'refused in identify': 4, 'refused in look-up': 6 },
        send_certificate: { 'refused in look-up': 2 },
        transfer_to_human_agents: { used: 9 },
      });
    });
  } else {
    it.skip(`${title} (shared/data/airline-agent.jsonl is not there)`, () => undefined);
  }

  function run(at: number): Promise<ReplayedTurn[]> {
    return app.get(ConversationRunner).run(FIXTURE[at]);
  }

  function calls(turns: readonly ReplayedTurn[]): string[] {
    return turns.flatMap(({ results }) => results.map(({ tool, outcome, step }) => `${tool} ${outcome} in ${step}`));
  }
});

describe('the diagram of a plan', () => {
  it('ORC-27 ORC-29 says every condition, group and restriction, and no label ends early', () => {
    const conditions: OrchestrationCondition[] = [
      { type: 'tool_used', value: 'a' },
      { type: 'sequence_match' },
      { type: 'last_tool', value: 'b' },
      { type: 'tool_count', value: 'c', count: 2 },
      {
        type: 'any_of',
        conditions: [
          { type: 'tool_failed', value: 'd' },
          { type: 'tokens_over', value: 9 },
        ],
      },
      { type: 'not', condition: { type: 'message_matches', value: '(?:a;b)' } },
      { type: 'predicate', value: 'office-hours' },
    ];
    const steps: OrchestrationStep[] = [
      { name: 'one #1', isDefault: true, availableTools: { allowed: ['a*', 'b'], denied: ['ab'] } },
      { name: 'two', conditions, sequence: [{ anyOf: ['a', 'b'] }, { optional: 'c' }, 'd'], onComplete: 'one #1' },
    ];

    expect(planDiagram({ steps }).split('\n')).toEqual([
      'stateDiagram-v2',
      '  step1 : one #35;1',
      '  step1 : only a*, b',
      '  step1 : never ab',
      '  step2 : two',
      '  step2 : in order - a or b, then perhaps c, then d',
      '  any : from any step',
      '  [*] --> step1',
      '  any --> step2 : a was used, and its sequence was used, and b was used last, and c was used 2 times, and (d failed 1 times ' +
        'or more than 9 tokens), and not the message matches /(?#58;a#59;b)/, and office-hours',
      '  step2 --> step1 : sequence finished',
      '',
    ]);
  });
});

describe('docs/orchestration.md', () => {
  const page = readFileSync(join(PROJECT, 'docs/orchestration.md'), 'utf8');

  it("ORC-25 shows the sample's plan unchanged", () => {
    expect(page).toContain(`\`\`\`mermaid\n${planDiagram(AIRLINE_PLAN)}\`\`\`\n`);
  });

  it('ORC-28 begins with a program that runs unchanged', () => {
    const program = readFileSync(join(PROJECT, 'sample/03-tool-sequences/five-minutes.ts'), 'utf8');
    const built = join(process.cwd(), 'build/sample/03-tool-sequences/five-minutes.js');

    expect(page).toContain(`\`\`\`ts\n${program}\`\`\`\n`);
    const printed = execFileSync(process.execPath, [built], { encoding: 'utf8', timeout: 60_000 });
    expect(page).toContain(`\`\`\`\n${printed}\`\`\`\n`);
  });
});
