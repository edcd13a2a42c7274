import { type ArgumentsHost } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { graphqlTransport } from './graphql.transport.js';
import { httpTransport } from './http.transport.js';
import { rpcTransport, websocketTransport } from './message.transports.js';
import { type Transport } from './transport.js';
import { transportMessages } from './transport.messages.js';

const TRANSPORTS: Readonly<Record<string, Transport>> = {
  http: httpTransport,
  ws: websocketTransport,
  graphql: graphqlTransport,
  rpc: rpcTransport,
};

/** Returns the transport of the handler's context. @throws SessionsConfigurationError for an unsupported context */
export function transportOf(host: ArgumentsHost): Transport {
  const type = host.getType<string>();
  if (Object.hasOwn(TRANSPORTS, type)) return TRANSPORTS[type];
  throw new SessionsConfigurationError(transportMessages.unknownContext(type, Object.keys(TRANSPORTS)));
}
