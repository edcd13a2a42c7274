import { messageCarrier } from './message-carrier.js';
import { type Transport } from './transport.js';

/** Microservices, by TCP or by a broker: what they have in common is a payload. */
export const rpcTransport: Transport = {
  subject: "a microservice's message",
  sessionAt: 'data:sessionId',
  turnAt: 'data:turnId',
  userAt: null,

  parts: (host) => ({ data: host.switchToRpc().getData<unknown>() ?? {} }),

  // Who sent it is a matter of each broker, or of each application.
  user: () => undefined,

  carriers(host) {
    const args = host.getArgs<unknown[]>();
    return [messageCarrier(args, args.length)];
  },
};
