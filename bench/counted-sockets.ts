import { type Socket } from 'node:net';

export interface Traffic {
  readonly received: number;
  readonly sent: number;
  /** Round trips on the connections. */
  readonly roundTrips: number;
}

const sockets = new Set<Socket>();
let roundTrips = 0;

/** Starts to count the traffic of a connection. */
export function countSocket<S extends Socket>(socket: S): S {
  sockets.add(socket);
  // A socket gets its own `write` when it connects.
  if (socket.pending) socket.once('connect', () => countRoundTrips(socket));
  else countRoundTrips(socket);
  return socket;
}

/** Returns the traffic of these connections so far, including closed ones. */
export function traffic(): Traffic {
  let [received, sent] = [0, 0];
  for (const socket of sockets) {
    received += socket.bytesRead;
    sent += socket.bytesWritten;
  }
  return { received, sent, roundTrips };
}

/** Data that is sent before the answer to earlier data belongs to the same round trip. */
function countRoundTrips(socket: Socket): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  let answered = -1;
  socket.write = (...args: unknown[]): boolean => {
    if (socket.bytesRead !== answered) roundTrips += 1;
    answered = socket.bytesRead;
    return write(...args);
  };
}
