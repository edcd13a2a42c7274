import { type Socket } from 'node:net';

const sockets = new Set<Socket>();

/** From now on, what goes over this connection counts. */
export function countSocket<S extends Socket>(socket: S): S {
  sockets.add(socket);
  return socket;
}

/** What went over those connections so far, also after their end. */
export function socketBytes(): { readonly received: number; readonly sent: number } {
  let [received, sent] = [0, 0];
  for (const socket of sockets) {
    received += socket.bytesRead;
    sent += socket.bytesWritten;
  }
  return { received, sent };
}
