import { Logger } from '@nestjs/common';
import { type Observable, Subject } from 'rxjs';
import { traceOf } from './error-trace.js';

/** Tells listeners of this process what happened. No listener delays or fails what it is told of. */
export class EventStream<Event extends { readonly type: string }> {
  private readonly logger = new Logger(this.constructor.name);
  private readonly subject = new Subject<Event>();

  /**
   * All events, in the order in which they happened in this process. As with every Observable, what a subscriber throws
   * is reported as an uncaught exception; `on` logs it.
   */
  readonly stream: Observable<Event> = this.subject.asObservable();

  /** Calls the listener for every event of a type. @returns ends it */
  on<Type extends Event['type']>(
    type: Type,
    listener: (event: Extract<Event, { readonly type: Type }>) => unknown,
  ): () => void {
    const subscription = this.subject.subscribe((event) => {
      if (event.type !== type) return;
      // Inside a promise, so that an async listener's rejection is caught as well.
      new Promise((resolve) => resolve(listener(event as Extract<Event, { readonly type: Type }>))).catch(
        (error: unknown) => {
          this.logger.error(`A listener of ${type} events threw.`, traceOf(error));
        },
      );
    });
    return () => subscription.unsubscribe();
  }

  /** Whether anybody listens. */
  get isHeard(): boolean {
    return this.subject.observed;
  }

  /** For the services of this package. */
  emit(event: Event): void {
    this.subject.next(event);
  }
}
