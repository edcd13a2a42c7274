import { type IncomingHttpHeaders } from 'node:http';
import { type CanActivate, Controller, Injectable, Post, UseFilters, UseGuards } from '@nestjs/common';
import { Query, Resolver } from '@nestjs/graphql';
import { MessagePattern } from '@nestjs/microservices';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  AllowAnonymousSession,
  CurrentOrchestrationState,
  CurrentSession,
  CurrentTurn,
  type OrchestrationState,
  RequireTool,
  type Session,
  SessionGuard,
  SessionId,
  SessionsExceptionFilter,
  ToolGuard,
  type Turn,
  UseSession,
} from 'nestjs-agent-sessions';
import { type Gate, gate } from '../support/running-application.js';

/** The values that a handler received. */
export interface Seen {
  readonly id: string | null;
  readonly session: Session | null;
}

/** Releases handlers once two have arrived: both sessions are resolved but not injected yet. */
@Injectable()
export class PairGuard implements CanActivate {
  private waiting: Gate[] = [];

  async canActivate(): Promise<boolean> {
    const mine = gate();
    this.waiting.push(mine);
    if (this.waiting.length === 2) for (const each of this.waiting.splice(0)) each.open();
    await mine.pass();
    return true;
  }
}

/** Declares a handler for HTTP, microservices, WebSocket and GraphQL, named like its method. */
const Handler =
  (path?: string): MethodDecorator =>
  (target, key, descriptor) => {
    const name = String(key);
    const decorators = [Post(path ?? name), MessagePattern(name), SubscribeMessage(name), Query(name)];
    for (const decorate of decorators) decorate(target, key, descriptor);
  };

/** Uses only parameter decorators of this package, which work in every transport. */
@UseGuards(SessionGuard)
export abstract class Handlers {
  @Handler()
  @UseSession()
  chat(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }

  @Handler()
  @UseSession({ from: 'data:talk', touch: false })
  named(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }

  @Handler()
  @UseSession({ optional: true })
  optional(@CurrentSession() session: Session | undefined, @SessionId() id: string | undefined): Seen {
    return seen(session, id);
  }

  @Handler()
  @UseSession()
  @AllowAnonymousSession()
  anonymous(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }

  @Handler()
  open(): object {
    return { open: true };
  }

  @Handler()
  @UseSession({ from: 'data:talk' })
  @UseGuards(PairGuard)
  pair(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }

  /** Only HTTP has cookies, and only with a parser. */
  @Handler()
  @UseSession({ from: 'cookie:sid' })
  nowhere(@SessionId() id: string): Seen {
    return seen(undefined, id);
  }

  @Handler('turn/:turnId')
  @UseSession()
  turn(@CurrentTurn() turn: Turn): object {
    return { id: turn.id, status: turn.status };
  }

  @Handler()
  @UseSession({ optional: true })
  turnOfNobody(@CurrentTurn({ from: 'data:turnId' }) turn: Turn): object {
    return { id: turn.id };
  }

  @Handler()
  @UseSession()
  state(@CurrentOrchestrationState() state: OrchestrationState | undefined): object {
    return { state: state ?? null };
  }

  @Handler()
  @UseSession()
  @UseGuards(ToolGuard)
  @RequireTool('search')
  search(): object {
    return { found: 3 };
  }

  @Handler()
  @UseSession()
  @UseGuards(ToolGuard)
  @RequireTool('search')
  searchInVain(): object {
    throw new Error('The index is gone.');
  }

  @Handler()
  @UseSession()
  @UseGuards(ToolGuard, PairGuard)
  @RequireTool('search')
  searchTogether(): object {
    return { found: 3 };
  }

  @Handler()
  @UseSession()
  @UseGuards(ToolGuard)
  @RequireTool('book')
  book(): object {
    return { booked: true };
  }
}

@Controller()
export class ControllerHandlers extends Handlers {}

/** The filter of forRoot does not apply to gateways. */
@WebSocketGateway()
@UseFilters(SessionsExceptionFilter)
export class GatewayHandlers extends Handlers {
  /** Trusts the handshake, in place of an application's authentication. */
  handleConnection(client: Client, request?: Client['handshake']): void {
    // For `ws`: the platform does not keep the upgrade request.
    client.handshake ??= request;
    const id = client.handshake?.headers['x-user-id'];
    if (typeof id === 'string') (client.data ?? client).user = userOf(id);
  }
}

@Resolver('Seen')
export class ResolverHandlers extends Handlers {}

export const SCHEMA = `
  scalar JSON
  type Query {
    chat: JSON
    named(talk: ID): JSON
    optional: JSON
    anonymous: JSON
    open: JSON
    pair(talk: ID): JSON
    nowhere: JSON
    turn(turnId: ID): JSON
    turnOfNobody(turnId: ID): JSON
    state: JSON
    search: JSON
    searchInVain: JSON
    searchTogether: JSON
    book: JSON
  }
`;

/** The user as set by an application's authentication. The prefix `sub:` selects a user without an `id`. */
export function userOf(id: string): object {
  return id.startsWith('sub:') ? { sub: id } : { id };
}

interface Client {
  handshake?: { readonly headers: IncomingHttpHeaders };
  /** Set by Socket.IO. */
  readonly data?: { user?: object };
  user?: object;
}

function seen(session: Session | undefined, id: string | undefined): Seen {
  return { session: session ?? null, id: id ?? null };
}
