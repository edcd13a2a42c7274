/** Stands among the arguments of a message's handler, for guards, interceptors and decorators of that one run. */
class MessageCarrier {}

/**
 * The carrier among the arguments; made where there is none, at `index`. Nest hands one list of them to guards and interceptors
 * and copies it for decorators. Nothing that is in it anyway would do: a socket has many messages, a payload may be a text or
 * missing, and several handlers may listen to one message.
 */
export function messageCarrier(args: unknown[], index: number): object {
  const known = args.find((arg) => arg instanceof MessageCarrier);
  if (known) return known;
  const carrier = new MessageCarrier();
  args.splice(index, 0, carrier);
  return carrier;
}
