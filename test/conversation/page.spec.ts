import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Module } from '@nestjs/common';
import { startApplication } from '../support/running-application.js';
import { afterTurns } from './after-turn.js';
import { headOf } from './compactors.js';
import { CheapModel } from './fixtures/cheap-model.js';
import { RefundSupport } from './fixtures/refund-support.js';

const FIXTURE = join(import.meta.dirname, 'fixtures/refund-support.ts');
const PAGE = join(import.meta.dirname, '../../docs/conversations.md');

@Module({ providers: [CheapModel, RefundSupport], exports: [CheapModel] })
class SupportModule {}

describe('docs/conversations.md', () => {
  it('BOT-40 BOT-41 shows an orchestrator that compacts after 20 turns', async () => {
    expect(readFileSync(PAGE, 'utf8')).toContain(`\`\`\`ts\n${readFileSync(FIXTURE, 'utf8')}\`\`\`\n`);
    const { app, adapter, handle, session } = await startApplication({
      imports: [SupportModule],
      orchestrators: [RefundSupport],
    });
    const sessionId = await session();
    const led = afterTurns(app);
    const say = async (turn: number) => {
      const { id, reply } = await handle(RefundSupport).execute(`${turn}`, { sessionId });
      await led(id);
      return reply;
    };
    const replies: (string | null)[] = [];
    for (let turn = 1; turn <= 22; turn += 1) replies.push(await say(turn));

    expect(replies.slice(-2)).toEqual(['You said 21 after 40 messages.', 'You said 22 after 7 messages.']);
    expect((await headOf(adapter, sessionId)).summary).toMatchObject({
      content: expect.stringMatching(/^36 messages: user, assistant/) as string,
      replaces: { from: 1, through: 36 },
    });
  });
});
