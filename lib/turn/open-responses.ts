import { type ServerResponse } from 'node:http';
import { type EventResponse } from './turn-event-pace.js';

/** Milliseconds in which clients can read the rest of their responses while the process stops. */
const READ_MS = 1000;

/** Node's response. A response of the application may lack the optional fields. */
type Response = EventResponse & Partial<Pick<ServerResponse, 'destroy' | 'destroyed' | 'req' | 'socket'>>;

/**
 * The responses of streams. While the process stops, one whose client does not read, or which waits for the store, would
 * keep the HTTP server from closing (TRN-14).
 */
export class OpenResponses {
  private readonly open = new Set<Response>();
  private closed = false;

  add(response: EventResponse): void {
    if (isClosed(response)) return;
    this.open.add(response);
    onceClosed(response, () => this.open.delete(response));
    if (this.closed) this.destroyLater(response);
  }

  /** Destroys the responses that do not end within a second. Their clients reconnect. */
  close(): void {
    this.closed = true;
    for (const response of this.open) this.destroyLater(response);
  }

  private destroyLater(response: Response): void {
    setTimeout(() => {
      if (this.open.has(response)) response.destroy?.();
    }, READ_MS).unref();
  }
}

/** Returns true if the client has disconnected, so that no close event follows. */
export function isClosed({ destroyed, req }: Response): boolean {
  return destroyed === true || req?.socket.destroyed === true;
}

/** Calls the listener when the response has ended, or its client has disconnected. */
export function onceClosed(response: Response, listener: () => void): void {
  const socket = response.req?.socket;
  const end = (): void => {
    response.removeListener('close', end);
    socket?.removeListener('close', end);
    listener();
  };
  response.on('close', end);
  // A pipelined response has no socket while earlier ones are sent, and no close event if the connection ends first.
  if (!response.socket) socket?.on('close', end);
}
