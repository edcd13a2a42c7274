import 'reflect-metadata';
import { type Server } from 'node:http';
import {
  Body,
  Controller,
  type INestApplication,
  ImATeapotException,
  ParseIntPipe,
  Post,
  UseGuards,
} from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { jest } from '@jest/globals';
import {
  CurrentOrchestrationState,
  defineStepPlan,
  memoryAdapter,
  type OrchestrationState,
  OrchestrationStateManager,
  RequireTool,
  SessionGuard,
  type SessionsAdapter,
  SessionsModule,
  SessionStore,
  StoreUnavailableError,
  ToolGuard,
  UseSession,
} from 'nestjs-agent-sessions';
import { concat, type Observable, of, throwError } from 'rxjs';
import request from 'supertest';

const SALES = defineStepPlan({ agent: 'sales', steps: [{ name: 'selling', isDefault: true }] });
const SUPPORT = defineStepPlan({
  agent: 'support',
  steps: [{ name: 'helping', isDefault: true, sequence: ['look', 'answer'] }],
});

@Controller()
@UseGuards(SessionGuard, ToolGuard)
@UseSession()
@RequireTool({ tool: 'search', agent: SALES })
class ToolsController {
  @Post('class')
  ofClass(): string {
    return 'found';
  }

  @Post('handler')
  @RequireTool({ tool: 'look', agent: 'support' })
  ofHandler(): string {
    return 'seen';
  }

  @Post('unrecorded')
  @RequireTool({ tool: 'search', agent: 'sales', record: false })
  unrecorded(): string {
    return 'found';
  }

  @Post('stream')
  stream(): Observable<string> {
    return of('first', 'last');
  }

  @Post('torn-stream')
  tornStream(): Observable<string> {
    return concat(
      of('first'),
      throwError(() => new ImATeapotException()),
    );
  }

  @Post('teapot')
  teapot(): never {
    throw new ImATeapotException();
  }

  @Post('forbidden')
  @UseGuards({ canActivate: () => false })
  forbidden(): string {
    return 'found';
  }

  @Post('parsed')
  parsed(@Body('count', ParseIntPipe) count: number): number {
    return count;
  }

  @Post('state')
  @RequireTool({ tool: 'look', agent: SUPPORT })
  state(@CurrentOrchestrationState({ agent: 'support' }) state: OrchestrationState | undefined): object {
    return { index: state?.sequenceIndex ?? null };
  }
}

describe('@RequireTool', () => {
  let app: INestApplication;
  let adapter: SessionsAdapter;
  let states: OrchestrationStateManager;
  let sessionId: string;

  beforeAll(async () => {
    adapter = memoryAdapter();
    const module = await Test.createTestingModule({
      imports: [
        SessionsModule.forRoot({ adapter, sweep: false, principal: () => ({ userId: 'ann' }) }),
        SessionsModule.forFeature([SALES, SUPPORT]),
      ],
      controllers: [ToolsController],
    }).compile();
    app = module.createNestApplication({ logger: false });
    await app.init();
    states = app.get(OrchestrationStateManager);
  });

  beforeEach(async () => {
    ({ id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' }));
  });

  afterEach(() => jest.restoreAllMocks());

  afterAll(() => app.close());

  const post = (path: string): request.Test =>
    request(app.getHttpServer() as Server)
      .post(`/${path}`)
      .set('x-session-id', sessionId);

  /** Stores the admission of a use, but fails to store its outcome. */
  function failOutcomes(): void {
    const append = adapter.state.append.bind(adapter.state);
    jest
      .spyOn(adapter.state, 'append')
      .mockRejectedValue(new StoreUnavailableError('away'))
      .mockImplementationOnce(append);
  }

  async function usesOf(agent: string): Promise<string[]> {
    const state = await states.of(agent).getState(sessionId);
    return state?.toolHistory.map(({ tool, outcome }) => `${tool} ${outcome}`) ?? [];
  }

  it('NST-14 applies to all handlers of a class; a handler’s own decorator replaces it', async () => {
    await post('class').expect(201);
    await post('handler').expect(201);

    expect(await usesOf('sales')).toEqual(['search succeeded']);
    expect(await usesOf('support')).toEqual(['look succeeded']);
    await post('handler').expect(403);
  });

  it('NST-14 does not record a use with record: false', async () => {
    await post('unrecorded').expect(201);

    expect(await usesOf('sales')).toEqual([]);
  });

  it.each([
    ['stream', 201, 'succeeded'],
    ['torn-stream', 418, 'succeeded'],
    ['teapot', 418, 'failed'],
  ])('NST-14 the first that comes of a handler says whether it succeeded: %s', async (path, status, outcome) => {
    await post(path).expect(status);

    expect(await usesOf('sales')).toEqual([`search ${outcome}`]);
  });

  it('NST-14 returns an error if the outcome cannot be recorded, and counts the use', async () => {
    failOutcomes();

    const answer = await post('class').expect(503);

    expect(answer.body).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(await usesOf('sales')).toEqual(['search admitted']);
  });

  it('FIX-21 does not run the handler if the use cannot be admitted', async () => {
    jest.spyOn(adapter.state, 'append').mockRejectedValue(new StoreUnavailableError('away'));

    await post('teapot').expect(503);
  });

  it('FIX-21 records nothing if a later guard rejects the request, and a failed use if a pipe does', async () => {
    await post('forbidden').expect(403);
    expect(await usesOf('sales')).toEqual([]);

    await post('parsed').send({}).expect(400);
    expect(await usesOf('sales')).toEqual(['search failed']);
  });

  it('NST-14 returns the handler’s error and logs the recording error if both fail', async () => {
    const errors: string[] = [];
    app.useLogger({ log: () => {}, warn: () => {}, error: (text: unknown) => void errors.push(String(text)) });
    failOutcomes();

    await post('teapot').expect(418);

    expect(errors).toEqual([expect.stringContaining('STORE_UNAVAILABLE')]);
  });

  it('NST-13 injects the state of the agent that @CurrentOrchestrationState names, with the admitted use', async () => {
    expect((await post('state').expect(201)).body).toEqual({ index: 1 });
    expect(await usesOf('support')).toEqual(['look succeeded']);
  });
});
