import { type ArgumentsHost } from '@nestjs/common';
import { messageCarrier } from './message-carrier.js';
import { type Transport } from './transport.js';

interface WebSocketClient {
  /** Of Socket.IO; others have it where the application keeps the upgrade request here. */
  readonly handshake?: { readonly headers?: unknown; readonly query?: unknown };
  readonly user?: unknown;
  /** Where Socket.IO lets applications keep what they know of a socket. */
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

  // Nest looks for the message's name at the end.
  carriers: (host) => [messageCarrier(host.getArgs(), -1)],
};

function clientOf(host: ArgumentsHost): WebSocketClient {
  return host.switchToWs().getClient<WebSocketClient>();
}
