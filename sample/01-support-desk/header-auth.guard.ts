import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';

export interface SampleRequest {
  readonly headers: Record<string, string | string[] | undefined>;
  user?: { id: string };
}

/** Placeholder for real authentication: it trusts the header. SessionGuard rejects requests without a user. */
@Injectable()
export class HeaderAuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<SampleRequest>();
    const id = request.headers['x-user-id'];
    if (typeof id === 'string' && id !== '') request.user = { id };
    return true;
  }
}
