import { type ArgumentsHost } from '@nestjs/common';
import { type Transport } from './transport.js';

/** Added to the arguments of a message's handler. Shared by the guards, interceptors and decorators of one call. */
class MessageCarrier {}

/**
 * Returns the carrier in the arguments, or inserts one at `index`. Nest passes one list of arguments to guards and
 * interceptors, and a copy to decorators. No other argument can serve: a socket has many messages, a payload may be a
 * string or missing, and one message may have several handlers.
 */
export function messageCarrier(args: unknown[], index: number): object {
  const known = args.find((arg) => arg instanceof MessageCarrier);
  if (known) return known;
  const carrier = new MessageCarrier();
  args.splice(index, 0, carrier);
  return carrier;
}

interface WebSocketClient {
  /** Set by Socket.IO. With other libraries, the application may store the upgrade request here. */
  readonly handshake?: { readonly headers?: unknown; readonly query?: unknown };
  readonly user?: unknown;
  /** The custom data of a socket in Socket.IO. */
  readonly data?: { readonly user?: unknown };
}

export const websocketTransport: Transport = {
  subject: 'a WebSocket message',
  sessionAt: 'data:sessionId',
  turnAt: 'data:turnId',
  userAt: 'client.user or client.data.user',

  parts(host) {
    const { handshake } = clientOf(host);
    return { data: host.switchToWs().getData<unknown>() ?? {}, header: handshake?.headers, query: handshake?.query };
  },

  user(host) {
    const client = clientOf(host);
    return client.user ?? client.data?.user;
  },

  // Nest expects the message's name last.
  carriers: (host) => [messageCarrier(host.getArgs(), -1)],
};

function clientOf(host: ArgumentsHost): WebSocketClient {
  return host.switchToWs().getClient<WebSocketClient>();
}

/** Microservices, over TCP or a broker. They only have a payload in common. */
export const rpcTransport: Transport = {
  subject: "a microservice's message",
  sessionAt: 'data:sessionId',
  turnAt: 'data:turnId',
  userAt: null,

  parts: (host) => ({ data: host.switchToRpc().getData<unknown>() ?? {} }),

  // The sender depends on the broker and the application.
  user: () => undefined,

  carriers(host) {
    const args = host.getArgs<unknown[]>();
    return [messageCarrier(args, args.length)];
  },
};
