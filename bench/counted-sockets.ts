import { type Socket } from 'node:net';

export interface Traffic {
  readonly received: number;
  readonly sent: number;
  /** From this side to the other one and back. */
  readonly roundTrips: number;
}

const sockets = new Set<Socket>();
let roundTrips = 0;

/** From now on, what goes over this connection counts. */
export function countSocket<S extends Socket>(socket: S): S {
  sockets.add(socket);
  // Connecting gives a socket its own `write` back.
  if (socket.pending) socket.once('connect', () => countRoundTrips(socket));
  else countRoundTrips(socket);
  return socket;
}

/** What went over those connections so far, also after their end. */
export function traffic(): Traffic {
  let [received, sent] = [0, 0];
  for (const socket of sockets) {
    received += socket.bytesRead;
    sent += socket.bytesWritten;
  }
  return { received, sent, roundTrips };
}

/** What is sent before there is an answer to what was sent before goes with it. */
function countRoundTrips(socket: Socket): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  let answered = -1;
  socket.write = (...args: unknown[]): boolean => {
    if (socket.bytesRead !== answered) roundTrips += 1;
    answered = socket.bytesRead;
    return write(...args);
  };
}
