import { Logger } from '@nestjs/common';
import { type Observable, Subject } from 'rxjs';
import { traceOf } from './error-trace.js';

/** Emits events to listeners in this process. Listeners cannot delay or fail the reported operation. */
export class EventStream<Event extends { readonly type: string }> {
  private readonly logger = new Logger(this.constructor.name);
  private readonly subject = new Subject<Event>();

  /**
   * All events, in the order in which they happened in this process. An error thrown by a subscriber is reported as an
   * uncaught exception, as with every Observable; `on` logs it instead.
   */
  readonly stream: Observable<Event> = this.subject.asObservable();

  /** Calls the listener for every event of a type. @returns a function that unsubscribes */
  on<Type extends Event['type']>(
    type: Type,
    listener: (event: Extract<Event, { readonly type: Type }>) => unknown,
  ): () => void {
    const subscription = this.subject.subscribe((event) => {
      if (event.type !== type) return;
      // The promise also catches rejections of async listeners.
      new Promise((resolve) => resolve(listener(event as Extract<Event, { readonly type: Type }>))).catch(
        (error: unknown) => {
          this.logger.error(`A listener of ${type} events threw.`, traceOf(error));
        },
      );
    });
    return () => subscription.unsubscribe();
  }

  /** True if there are listeners. */
  get isAnswered(): boolean {
    return this.subject.observed;
  }

  /** Emits an event. Used by the services of this package. */
  emit(event: Event): void {
    this.subject.next(event);
  }
}
