import { type ArgumentsHost } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { graphqlTransport } from './graphql.transport.js';
import { httpTransport } from './http.transport.js';
import { rpcTransport } from './rpc.transport.js';
import { type Transport } from './transport.js';
import { websocketTransport } from './websocket.transport.js';

const TRANSPORTS: Readonly<Record<string, Transport>> = {
  http: httpTransport,
  ws: websocketTransport,
  graphql: graphqlTransport,
  rpc: rpcTransport,
};

/** By Nest's name of the handler's context. @throws SessionsConfigurationError for one that is none of these */
export function transportOf(host: ArgumentsHost): Transport {
  const type = host.getType<string>();
  if (Object.hasOwn(TRANSPORTS, type)) return TRANSPORTS[type];
  throw new SessionsConfigurationError(
    `Sessions are not known in contexts of the type ${JSON.stringify(type)}. Known: ${Object.keys(TRANSPORTS).join(', ')}.`,
  );
}
