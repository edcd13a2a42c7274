import { AsyncLocalStorage } from 'node:async_hooks';

/** Calls a function where no request is: what it begins is part of nobody's trace, and sees nothing of a request's context. */
export type OutsideRequests = <T>(work: () => T) => T;

/**
 * For an object that is made as the application starts, and does things by the clock that some request happened to begin:
 * without it they would run in the asynchronous context of that request for as long as they go on.
 */
export function outsideRequests(): OutsideRequests {
  return AsyncLocalStorage.snapshot();
}
