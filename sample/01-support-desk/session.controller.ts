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

  @Get('session')
  @UseDeskSession()
  session(@CurrentSession() session: Session): Session {
    return session;
  }
}
