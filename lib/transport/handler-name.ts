import { type ExecutionContext } from '@nestjs/common';

/** As errors name a handler, for example `ChatController.say`. */
export function handlerName(context: ExecutionContext): string {
  return `${context.getClass().name}.${context.getHandler().name}`;
}
