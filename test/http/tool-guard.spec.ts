import 'reflect-metadata';
import { Controller, Post, UseGuards } from '@nestjs/common';
import {
  CurrentSession,
  defineStepPlan,
  memoryAdapter,
  OrchestrationService,
  OrchestrationStateManager,
  RequireTool,
  type Session,
  SessionGuard,
  SessionsModule,
  SessionStore,
  ToolGuard,
  UseSession,
} from 'nestjs-agent-sessions';
import request from 'supertest';
import { HeaderAuthGuard, type HttpApp, PLATFORMS } from './http-app.js';

const SALES = defineStepPlan({
  agent: 'sales',
  steps: [
    { name: 'booking', isDefault: true, sequence: ['search', 'book', 'pay'], availableTools: { denied: ['refund'] } },
  ],
});
const SUPPORT = defineStepPlan({
  agent: 'support',
  steps: [
    { name: 'refunds', isDefault: true, availableTools: { allowed: ['refund*', 'search'], denied: ['refund_all'] } },
  ],
});
const LENIENT = defineStepPlan({ ...configOf(SALES), onViolation: 'warn' });

@Controller('tools')
@UseGuards(HeaderAuthGuard, SessionGuard, ToolGuard)
@UseSession()
class ToolsController {
  constructor(private readonly orchestration: OrchestrationService) {}

  @Post('search')
  @RequireTool({ tool: 'search', record: false })
  async search(@CurrentSession() session: Session): Promise<{ ran: string }> {
    await this.orchestration.processToolUsage(session.id, 'search');
    return { ran: 'search' };
  }

  @Post('book')
  @RequireTool('book')
  book(): { ran: string } {
    return { ran: 'book' };
  }

  @Post('open')
  open(): { ran: string } {
    return { ran: 'open' };
  }
}

@Controller('agents')
@UseGuards(HeaderAuthGuard, SessionGuard, ToolGuard)
@UseSession()
@RequireTool({ tool: 'refund', agent: SUPPORT })
class AgentsController {
  @Post('refund')
  refund(): { ran: string } {
    return { ran: 'refund' };
  }

  @Post('refund-all')
  @RequireTool({ tool: 'refund_all', agent: 'support' })
  refundAll(): { ran: string } {
    return { ran: 'refund_all' };
  }

  @Post('sales-refund')
  @RequireTool({ tool: 'refund', agent: 'sales' })
  salesRefund(): { ran: string } {
    return { ran: 'refund' };
  }

  @Post('whose')
  @RequireTool('refund')
  whose(): { ran: string } {
    return { ran: 'refund' };
  }
}

@Controller('sessionless')
@UseGuards(HeaderAuthGuard, SessionGuard, ToolGuard)
class SessionlessController {
  @Post('book')
  @UseSession({ optional: true })
  @RequireTool('book')
  book(): { ran: string } {
    return { ran: 'book' };
  }

  @Post('open')
  open(): { ran: string } {
    return { ran: 'open' };
  }
}

function configOf({ agent, steps }: typeof SALES): Parameters<typeof defineStepPlan>[0] {
  return { agent, steps };
}

describe.each(PLATFORMS)('the tool guard on $name', ({ start }) => {
  let app: HttpApp;
  let sessionId: string;

  async function startWith(plans: readonly (typeof SALES)[]): Promise<void> {
    app = await start({
      imports: [
        SessionsModule.forRoot({ adapter: memoryAdapter(), sweep: false }),
        SessionsModule.forFeature([...plans]),
      ],
      controllers: [ToolsController, AgentsController, SessionlessController],
    });
    ({ id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' }));
  }

  afterEach(() => app.close());

  const post = (path: string) =>
    request(app.getHttpServer()).post(path).set('x-user-id', 'ann').set('x-session-id', sessionId);

  it('ORC-28 NST-14 NST-15 answers 403 with a stable body until the plan allows the tool', async () => {
    await startWith([SALES]);
    const refused = await post('/tools/book').expect(403);
    expect(refused.body).toEqual({
      statusCode: 403,
      code: 'TOOL_NOT_ALLOWED',
      message: 'The tool book is not allowed in step booking. Allowed now: search.',
      sessionId,
    });
    const problem = await post('/tools/book').set('accept', 'application/problem+json').expect(403);
    expect(JSON.parse(problem.text)).toMatchObject({ title: 'TOOL_NOT_ALLOWED', status: 403, sessionId });

    expect((await post('/tools/search').expect(201)).body).toEqual({ ran: 'search' });
    expect((await post('/tools/book').expect(201)).body).toEqual({ ran: 'book' });
    // The handler recorded the first use, the decorator the second.
    expect(await app.get(OrchestrationStateManager).getState(sessionId)).toMatchObject({
      sequenceIndex: 2,
      toolHistory: [{ tool: 'search' }, { tool: 'book' }],
    });
    await post('/tools/search').expect(403);
    await post('/tools/open').expect(201);
  });

  it('ORC-28 allows tools that the plan only warns about, and rejects all without a plan', async () => {
    await startWith([LENIENT]);
    await post('/tools/book').expect(201);
    await app.close();
    await startWith([]);
    const errors = errorsOf(app);
    await post('/tools/book').expect(500);
    expect(errors.join()).toContain(
      'ToolsController.book requires the tool book, but its agent has no plan in this process',
    );
    expect(await app.get(OrchestrationStateManager).getState(sessionId)).toBeNull();
  });

  it('ORC-28 ORC-02 uses the plan of the named agent, and fails if several have plans and none is named', async () => {
    await startWith([SALES, SUPPORT]);
    expect((await post('/agents/refund').expect(201)).body).toEqual({ ran: 'refund' });
    expect((await post('/agents/refund-all').expect(403)).body).toMatchObject({
      message: 'The tool refund_all is not allowed in step refunds. Allowed now: refund*, search, but not refund_all.',
    });
    expect((await post('/agents/sales-refund').expect(403)).body).toMatchObject({ code: 'TOOL_NOT_ALLOWED' });
    const errors = errorsOf(app);
    const unclear = await post('/agents/whose').expect(500);
    expect(unclear.body).toEqual({ statusCode: 500, code: 'CONFIGURATION', message: 'Internal server error' });
    expect(errors.join()).toContain('sales, support have plans');
  });

  it('ORC-28 fails with a configuration error if the request has no session', async () => {
    await startWith([SALES]);
    const errors = errorsOf(app);
    const answer = await request(app.getHttpServer()).post('/sessionless/book').set('x-user-id', 'ann').expect(500);
    expect(errors.join()).toContain(
      'SessionlessController.book requires the tool book, but the request has no session. Add a required @UseSession() and ' +
        'SessionGuard, for example @UseGuards(AuthGuard, SessionGuard, ToolGuard).',
    );
    expect(answer.body).toEqual({ statusCode: 500, code: 'CONFIGURATION', message: 'Internal server error' });
    await post('/sessionless/open').expect(201);
    // The response to another user reveals no part of the plan.
    await post('/tools/book').set('x-user-id', 'eve').expect(404);
  });
});

/** Collects the errors that the application logs from now on. */
function errorsOf(app: HttpApp): string[] {
  const errors: string[] = [];
  app.useLogger({ log: () => {}, warn: () => {}, error: (message: unknown) => errors.push(String(message)) });
  return errors;
}
