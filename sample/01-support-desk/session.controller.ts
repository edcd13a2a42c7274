import { randomUUID } from 'node:crypto';
import { BadRequestException, Body, Controller, Get, HttpCode, Post, Query, Req, Res, UseGuards } from '@nestjs/common';
import {
  CurrentSession,
  type Session,
  SessionGuard,
  type SessionState,
  SessionStore,
  TurnService,
  UnauthenticatedError,
} from 'nestjs-agent-sessions';
import { ListDto, StartDto } from './chat.dto.js';
import { CookieAuthGuard } from './cookie-auth.guard.js';
import { HeaderAuthGuard, type SampleRequest } from './header-auth.guard.js';
import { type CookieResponse, SESSION_COOKIE, setCookie, USER_COOKIE } from './page-cookies.js';
import { UseDeskSession } from './use-desk-session.decorator.js';

/** The states of conversations that the user can continue. */
const OPEN: SessionState[] = ['created', 'active', 'suspended'];
const MAX_TITLE = 60;

@Controller()
@UseGuards(HeaderAuthGuard, CookieAuthGuard, SessionGuard)
export class SessionController {
  constructor(
    private readonly sessions: SessionStore,
    private readonly turns: TurnService,
  ) {}

  /**
   * Signs a new user in when the page opens; a real application authenticates the user. It accepts JSON only, which a form on another site
   * cannot send, so such a site cannot sign a user in.
   */
  @Post('sign-in')
  @HttpCode(204)
  signIn(@Body() body: unknown, @Res({ passthrough: true }) response: CookieResponse): void {
    if (body === undefined) throw new BadRequestException('The body must be JSON: {}');
    setCookie(response, USER_COOKIE, `visitor-${randomUUID()}`);
  }

  /** Creates a conversation and sets the page's cookie to it. */
  @Post('sessions')
  async start(
    @Req() { user }: SampleRequest,
    @Body() { surface }: StartDto,
    @Res({ passthrough: true }) response: CookieResponse,
  ): Promise<Session> {
    if (!user) throw new UnauthenticatedError();
    const session = await this.sessions.create({ userId: user.id, initialSurfaceId: surface });
    setCookie(response, SESSION_COOKIE, session.id);
    return session;
  }

  /** Lists the user's conversations by their first message, the latest conversation first. */
  @Get('sessions')
  async list(@Req() { user }: SampleRequest, @Query() { cursor }: ListDto): Promise<object> {
    if (!user) throw new UnauthenticatedError();
    const { sessions, nextCursor } = await this.sessions.page({ userId: user.id, state: OPEN, cursor });
    const conversations = await Promise.all(
      sessions.map(async ({ id, lastActivityAt }) => {
        const [first] = await this.turns.list({ sessionId: id, limit: 1 });
        return { id, lastActivityAt, title: first?.request.input.text.slice(0, MAX_TITLE) };
      }),
    );
    return { conversations, nextCursor };
  }

  /** Continues the conversation that the header names: sets the page's cookie to it. */
  @Post('session')
  @HttpCode(204)
  @UseDeskSession()
  async open(
    @CurrentSession() { id }: Session,
    @Body() { surface }: StartDto,
    @Res({ passthrough: true }) response: CookieResponse,
  ): Promise<void> {
    if (surface !== undefined) await this.sessions.attachSurface(id, surface);
    setCookie(response, SESSION_COOKIE, id);
  }

  @Get('session')
  @UseDeskSession()
  session(@CurrentSession() session: Session): Session {
    return session;
  }
}
