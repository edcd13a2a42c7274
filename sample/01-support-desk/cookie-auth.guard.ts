import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { type SampleRequest } from './header-auth.guard.js';
import { cookieOf, USER_COOKIE } from './page-cookies.js';

/** Authenticates the page. Like HeaderAuthGuard, it is a placeholder: it trusts the cookie that `POST /sign-in` sets. */
@Injectable()
export class CookieAuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<SampleRequest>();
    const id = cookieOf(request.headers, USER_COOKIE);
    if (id !== '') request.user ??= { id };
    return true;
  }
}
