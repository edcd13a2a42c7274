import 'reflect-metadata';
import { Body, Controller, Injectable, Post, UseGuards, ValidationPipe } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { IsString } from 'class-validator';
import request from 'supertest';
import {
  CurrentSession,
  InjectOrchestrator,
  OrchestratorHandle,
  type Session,
  SessionGuard,
  SessionsConfigurationError,
  type TurnResult,
  UseSession,
} from 'nestjs-agent-sessions';
import {
  scriptedOrchestrator,
  type SessionsTestingModule,
  type SessionsTestingOptions,
} from 'nestjs-agent-sessions/testing';
import { HeaderAuthGuard } from '../http/http-app.js';
import { SupportDesk } from './support-desk.js';
import { create } from './testing-application.js';

class SayDto {
  @IsString()
  text!: string;
}

@Injectable()
class Greeter {
  greeting(): string {
    return 'Hi, ';
  }
}

/** A typical controller of an application. */
@Controller('chat')
@UseGuards(HeaderAuthGuard, SessionGuard)
class ChatController {
  constructor(
    @InjectOrchestrator(SupportDesk) private readonly desk: OrchestratorHandle,
    private readonly greeter: Greeter,
  ) {}

  @Post()
  @UseSession()
  async say(@CurrentSession() session: Session, @Body() body: SayDto): Promise<TurnResult> {
    const result = await this.desk.execute(body.text, { sessionId: session.id });
    return { ...result, reply: this.greeter.greeting() + result.reply };
  }
}

describe('SessionsTestingModule.http', () => {
  it.each<[string, NonNullable<SessionsTestingOptions['http']>]>([
    ['Express', true],
    ['Fastify', (module) => module.createNestApplication(new FastifyAdapter())],
  ])('NST-26 serves controllers and guards with a scripted orchestrator, on %s', async (_, http) => {
    const desk = scriptedOrchestrator(SupportDesk, ['order 7 is shipped.']);
    const app = await start({ orchestrators: [desk], http });
    const chat = await app.conversation({ userId: 'ann' });
    const post = (user: string, text = 'where is order 7?') =>
      request(app.http.getHttpServer() as never)
        .post('/chat')
        .set({ 'x-user-id': user, 'x-session-id': chat.sessionId })
        .send({ text });

    await post('bob').expect(404);
    const answer = await post('ann').expect(201);

    expect(answer.body).toMatchObject({ reply: 'Hi, order 7 is shipped.', turnIndex: 0, sessionId: chat.sessionId });
    expect(desk.inputs).toEqual([{ text: 'where is order 7?' }]);
    expect(await chat.session()).toMatchObject({ state: 'active' });
    await post('ann', '').expect(400);

    await app.clock.advance('2h');
    await app.sweep();
    expect(await chat.session()).toMatchObject({ state: 'suspended' });
  });

  it('NST-26 serves the controllers of this package', async () => {
    const guards = [new HeaderAuthGuard()];
    const app = await start({
      orchestrators: [scriptedOrchestrator(SupportDesk, ['Order 7 is shipped.'])],
      principal: () => ({ userId: 'ann', capabilities: ['state.describe'] }),
      sessionsControllers: { state: { guards } },
      http: true,
    });
    const chat = await app.conversation({ userId: 'ann' });
    await chat.say('where is order 7?');

    const answer = await request(app.http.getHttpServer() as never)
      .post('/state/describe')
      .set('x-user-id', 'ann')
      .send({ sessionId: chat.sessionId, stores: ['conversation'] })
      .expect(200);

    expect(answer.body).toMatchObject({ stores: [{ name: 'conversation', messageCount: 2 }] });
  });

  it('NST-26 configures the application with the function', async () => {
    const app = await start({
      orchestrators: [scriptedOrchestrator(SupportDesk, ['yes.'])],
      http: (module) => module.createNestApplication().setGlobalPrefix('api').useGlobalPipes(new ValidationPipe()),
    });
    const { sessionId } = await app.conversation({ userId: 'ann' });
    const post = (body: object) =>
      request(app.http.getHttpServer() as never)
        .post('/api/chat')
        .set({ 'x-user-id': 'ann', 'x-session-id': sessionId })
        .send(body);

    await post({ text: 7 }).expect(400);
    await post({ text: 'hi' }).expect(201);
  });

  it('NST-26 closes a listening server', async () => {
    const app = await start({ orchestrators: [scriptedOrchestrator(SupportDesk, [])], http: true });
    await app.http.listen(0);
    const url = await app.http.getUrl();
    expect((await fetch(`${url}/chat`, { method: 'POST' })).status).toBe(401);

    await app.close();

    await expect(fetch(`${url}/chat`, { method: 'POST' })).rejects.toThrow('fetch failed');
  });

  it('NST-26 reports how to enable it', async () => {
    const app = await start({ orchestrators: [scriptedOrchestrator(SupportDesk, [])] });

    expect(() => app.http).toThrow(SessionsConfigurationError);
    expect(() => app.http).toThrow(
      'The HTTP application is disabled. Enable it with SessionsTestingModule.create({ http: true })',
    );
  });
});

function start(options: SessionsTestingOptions): Promise<SessionsTestingModule> {
  return create({ controllers: [ChatController], providers: [Greeter], ...options });
}
