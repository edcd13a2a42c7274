import { type SessionsErrorBody } from './sessions-error-body.js';

/** Socket.IO's, and that of `ws` and whatever else follows the WebSocket standard; these have an `emit` that sends nothing. */
export interface WebSocketLike {
  readonly readyState?: number;
  readonly send: (text: string) => void;
  readonly emit: (event: string, payload: object) => void;
}

/** As Nest tells clients of errors: the event `exception`, also where an acknowledgement was asked for. */
export function emitException(client: WebSocketLike, body: SessionsErrorBody): void {
  if (typeof client.readyState === 'number') client.send(JSON.stringify({ event: 'exception', data: body }));
  else client.emit('exception', body);
}
