import { SetMetadata } from '@nestjs/common';

const STATE_ROUTE = Symbol('agent-sessions:state-route');

/** Marks a handler as one of the control plane. */
export const StateRoute = (): MethodDecorator => SetMetadata(STATE_ROUTE, true);

/** Whether it is such a handler: what the metadata of a handler says, Nest hands on to what it registers for it. */
export function isStateRoute(handler: unknown): boolean {
  return typeof handler === 'function' && Reflect.hasMetadata(STATE_ROUTE, handler);
}
