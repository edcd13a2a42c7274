import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type OrchestratorConfig,
  type OrchestratorEvent,
  type OrchestratorHandle,
  type TurnContext,
  type TurnReport,
} from 'nestjs-agent-sessions';

const PROJECT = join(import.meta.dirname, '../..');
const FIRST = 'sample/04-model-agent/first-orchestrator';

describe('docs/orchestrators.md', () => {
  const page = readFileSync(join(PROJECT, 'docs/orchestrators.md'), 'utf8');

  it('BOT-03 BOT-05 begins with a program that runs unchanged', () => {
    const program = readFileSync(join(PROJECT, `${FIRST}.ts`), 'utf8');

    expect(page).toContain(`\`\`\`ts\n${program}\`\`\`\n`);
    const printed = execFileSync(process.execPath, [join(PROJECT, `build/${FIRST}.js`)], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(page).toContain(`\`\`\`\n${printed}\`\`\`\n`);
  });

  // The compiler sees to it that these lists have all there are.
  const options: Record<keyof OrchestratorConfig, true> = {
    name: true,
    version: true,
    initialState: true,
    historyWindow: true,
    compaction: true,
    keepCheckpoints: true,
    maxStateBytes: true,
    steps: true,
    onViolation: true,
    tokenBudget: true,
    iterate: true,
    maxIterations: true,
    initialIntent: true,
    migrations: true,
    stateSchema: true,
    memory: true,
    memoryScope: true,
    on: true,
    route: true,
    router: true,
    intents: true,
    evaluate: true,
  };
  const context: Record<keyof TurnContext, true> = {
    id: true,
    sessionId: true,
    session: true,
    input: true,
    state: true,
    history: true,
    turnIndex: true,
    iteration: true,
    messages: true,
    replies: true,
    feedback: true,
    memories: true,
    attempt: true,
    attributes: true,
    context: true,
    signal: true,
    tools: true,
    usage: true,
    step: true,
    waitFor: true,
    emit: true,
    flush: true,
    emitted: true,
    modules: true,
    task: true,
  };
  const handle: Record<keyof OrchestratorHandle, true> = {
    name: true,
    version: true,
    signature: true,
    execute: true,
    submit: true,
    stream: true,
    resume: true,
    history: true,
    undo: true,
    fork: true,
    asTool: true,
    command: true,
    on: true,
  };
  const events: Record<OrchestratorEvent['type'], true> = {
    'turn-starting': true,
    'session-loaded': true,
    'drift-checked': true,
    'history-windowed': true,
    routed: true,
    delta: true,
    'checkpoint-persisted': true,
    'turn-settled': true,
    'compaction-suggested': true,
    'compaction-applied': true,
    'compaction-failed': true,
  };
  const report: Record<keyof TurnReport, true> = {
    status: true,
    attempt: true,
    durationMs: true,
    endedBy: true,
    iterations: true,
    usage: true,
    migrated: true,
    compaction: true,
    dropped: true,
  };
  const ends: Record<NonNullable<TurnReport['endedBy']>, true> = {
    dispatch: true,
    end: true,
    outcome: true,
    satisfied: true,
    'max-iterations': true,
  };

  it.each([
    ['BOT-01 has every option', 'Options', options, (name: string) => `${name}\\b`],
    [
      'BOT-02 has all that a function receives',
      'What your functions receive',
      context,
      (name: string) => `turn\\.${name}\\b`,
    ],
    ['BOT-01 has the whole handle', 'The handle', handle, (name: string) => `^\\|.*\`${name}(\\(|\`)`],
    ['BOT-10 has every event', 'Events', events, (name: string) => `\`${name}\``],
    ['BOT-09 has the whole report', 'Reports', report, (name: string) => `^ +${name}:`],
    ['BOT-05 has every end of a turn', 'Iterating', ends, (name: string) => `\`${name}\``],
  ] as const)('%s', (_, title, all, mention) => {
    const [, section] = new RegExp(`\\n## ${title}\\n(.*?)\\n## `, 's').exec(page) ?? [];

    expect(Object.keys(all).filter((name) => !new RegExp(mention(name), 'm').test(section))).toEqual([]);
  });
});
