import 'reflect-metadata';
import { Controller, Get, Sse, type Type, UseGuards } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import {
  CurrentOrchestrationState,
  CurrentSession,
  CurrentTurn,
  type OrchestrationState,
  RequireTool,
  type Session,
  SessionGuard,
  SessionId,
  SessionsConfigurationError,
  SessionsModule,
  ToolGuard,
  type Turn,
  UseSession,
} from 'nestjs-agent-sessions';
import { EMPTY, type Observable } from 'rxjs';
import { rejection } from '../support/running-application.js';

@Controller()
@UseGuards(SessionGuard)
class NeedsSession {
  @Get()
  chat(@CurrentSession() session: Session): object {
    return { id: session.id };
  }
}

@Controller()
@UseGuards(SessionGuard)
class NeedsId {
  @Get('open')
  open(): void {}

  @Get()
  chat(@SessionId() id: string): object {
    return { id };
  }
}

@Controller()
@UseGuards(SessionGuard)
class NeedsTurn {
  @Get(':turnId')
  show(@CurrentTurn() turn: Turn): object {
    return { id: turn.id };
  }
}

@Controller()
@UseGuards(SessionGuard)
class NeedsState {
  @Get()
  show(@CurrentOrchestrationState() state: OrchestrationState | undefined): object {
    return { step: state?.activeStep };
  }
}

@Controller()
@UseGuards(SessionGuard, ToolGuard)
class NeedsPlan {
  @Get()
  @RequireTool('search')
  search(): void {}
}

@Controller()
@UseGuards(SessionGuard, ToolGuard)
@RequireTool('search')
class NeedsPlanForAll {
  @Get()
  search(): void {}
}

class Inheriting extends NeedsSession {}
Controller('inheriting')(Inheriting);

@Controller()
@UseGuards(SessionGuard)
class Messages {
  @MessagePattern('chat')
  chat(@SessionId() id: string): string {
    return id;
  }
}

@Controller()
@UseGuards(SessionGuard)
class Correct {
  @Get('chat')
  @UseSession({ from: 'data:id' })
  chat(@CurrentSession() session: Session): object {
    return { id: session.id };
  }

  @Get('open')
  open(): void {}

  // Not a handler.
  helper(@SessionId() id: string): string {
    return id;
  }
}

@Controller('all')
@UseGuards(SessionGuard)
@UseSession()
class CorrectForAll {
  @Get()
  chat(@CurrentSession() session: Session): object {
    return { id: session.id };
  }
}

describe('handlers that need a session', () => {
  it.each([
    ['@CurrentSession()', NeedsSession, 'NeedsSession.chat'],
    ['@CurrentSession()', Inheriting, 'Inheriting.chat'],
    ['@SessionId()', NeedsId, 'NeedsId.chat'],
    ['@CurrentTurn()', NeedsTurn, 'NeedsTurn.show'],
    ['@CurrentOrchestrationState()', NeedsState, 'NeedsState.show'],
    ['@RequireTool()', NeedsPlan, 'NeedsPlan.search'],
    ['@RequireTool()', NeedsPlanForAll, 'NeedsPlanForAll.search'],
  ])('DAY-04 NST-13 stop the start without @UseSession(): %s in %p', async (decorator, controller, handler) => {
    const error = await rejection(start(controller), SessionsConfigurationError);
    expect(error.message).toBe(
      `${handler} has ${decorator}, but no @UseSession(), so no session is loaded for it. Add @UseSession() to the method or ` +
        'to the class, and SessionGuard to @UseGuards(), after the guard that sets the user.',
    );
  });

  it('DAY-04 start with @UseSession() on the method or the class', async () => {
    await start(Correct);
    await start(CorrectForAll);
  });

  it('DAY-04 stop the start of a process without HTTP only for messages', async () => {
    const worker = await moduleWith(NeedsSession).compile();
    await worker.init();
    await worker.close();
    const microservice = await moduleWith(Messages).compile();
    const error = await rejection(microservice.init(), SessionsConfigurationError);
    expect(error.message).toContain('Messages.chat has @SessionId(), but no @UseSession()');
  });
});

@Controller()
@UseGuards(SessionGuard, ToolGuard)
@UseSession()
class StreamedTool {
  @Sse()
  @RequireTool('search')
  search(): Observable<never> {
    return EMPTY;
  }
}

@Controller()
@UseGuards(SessionGuard, ToolGuard)
@UseSession()
@RequireTool('search')
class StreamedTools {
  @Sse()
  search(): Observable<never> {
    return EMPTY;
  }
}

describe('tools that stream', () => {
  it.each([StreamedTool, StreamedTools])(
    'NST-14 stop the start, because they could not be refused: %p',
    async (type) => {
      const error = await rejection(start(type), SessionsConfigurationError);
      expect(error.message).toContain(`${type.name}.search has @RequireTool() and @Sse(), but`);
      expect(error.message).toContain('call OrchestrationService.admitTool()');
    },
  );
});

describe('the option from of a decorator', () => {
  const KINDS =
    'must be one of header:NAME, param:NAME, query:NAME, cookie:NAME, data:NAME, where data is the body or payload, or a function.';

  it.each([
    ['body:id', "Received: 'body:id'. Did you mean 'data:id'?"],
    ['payload:id', "Received: 'payload:id'. Did you mean 'data:id'?"],
    ['headers:x-chat', "Received: 'headers:x-chat'. Did you mean 'header:x-chat'?"],
    ['Query:chat', "Received: 'Query:chat'. Did you mean 'query:chat'?"],
    ['session:id', "Received: 'session:id'."],
    ['sessionId', "Received: 'sessionId'."],
    ['header:', "Received: 'header:'."],
    [7, 'Received: 7.'],
  ])('DAY-04 stops the start with %j, naming the class, the method and the cure', (from, received) => {
    expect(() => {
      class ChatController {
        @UseSession({ from: from as 'data:id' })
        say(): void {}
      }
      return ChatController;
    }).toThrow(
      new SessionsConfigurationError(`ChatController.say: the option from of @UseSession() ${KINDS} ${received}`),
    );
  });

  it('DAY-04 stops the start for a class, and for @CurrentTurn()', () => {
    const from = 'body:id' as 'data:id';
    expect(() => {
      @UseSession({ from })
      class ChatController {}
      return ChatController;
    }).toThrow('ChatController: the option from of @UseSession() must be one of');
    expect(() => {
      class TurnController {
        show(@CurrentTurn({ from }) turn: Turn): object {
          return turn;
        }
      }
      return TurnController;
    }).toThrow('TurnController.show: the option from of @CurrentTurn() must be one of');
  });

  it('DAY-04 accepts every known kind, a function, and none', () => {
    const sources = ['header:x', 'param:x', 'query:x', 'cookie:x', 'data:x', () => 's1', undefined] as const;
    for (const from of sources) expect(() => UseSession({ from })(class ChatController {})).not.toThrow();
  });
});

/** Starts and stops an application with HTTP. */
async function start(controller: Type): Promise<void> {
  const app = (await moduleWith(controller).compile()).createNestApplication({ logger: false });
  try {
    await app.init();
  } finally {
    await app.close();
  }
}

function moduleWith(controller: Type): ReturnType<typeof Test.createTestingModule> {
  return Test.createTestingModule({ imports: [SessionsModule.forRoot({ sweep: false })], controllers: [controller] });
}
