import { randomUUID } from 'node:crypto';
import { BadRequestException, Body, Controller, Get, HttpCode, Post, Req, Res, UseGuards } from '@nestjs/common';
import { CurrentSession, type Session, SessionGuard, SessionStore, UnauthenticatedError } from 'nestjs-agent-sessions';
import { StartDto } from './chat.dto.js';
import { CookieAuthGuard } from './cookie-auth.guard.js';
import { HeaderAuthGuard, type SampleRequest } from './header-auth.guard.js';
import { type CookieResponse, SESSION_COOKIE, setCookie, USER_COOKIE } from './page-cookies.js';
import { UseDeskSession } from './use-desk-session.decorator.js';

@Controller()
@UseGuards(HeaderAuthGuard, CookieAuthGuard, SessionGuard)
export class SessionController {
  constructor(private readonly sessions: SessionStore) {}

  /**
   * Whoever opens the page is somebody new: a real application asks who. It takes JSON alone: a form on another site cannot send
   * that, and so signs nobody in.
   */
  @Post('sign-in')
  @HttpCode(204)
  signIn(@Body() body: unknown, @Res({ passthrough: true }) response: CookieResponse): void {
    if (body === undefined) throw new BadRequestException('The body must be JSON: {}');
    setCookie(response, USER_COOKIE, `visitor-${randomUUID()}`);
  }

  /** Begins a conversation. The page's cookie names it from now on. */
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

  @Get('session')
  @UseDeskSession()
  session(@CurrentSession() session: Session): Session {
    return session;
  }
}
