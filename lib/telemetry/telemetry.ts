import { type CounterName, type HistogramName, type UpDownCounterName } from './instruments.js';

/** Of spans and measurements. Never a message, a state, or who the user is; in measurements no ids either. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** One piece of work as its span tells of it. */
export interface SpanOptions {
  readonly name: string;
  /** The kind of the span. Default `internal`. */
  readonly kind?: 'internal' | 'client' | 'producer' | 'consumer';
  readonly attributes?: Attributes;
  /** The W3C `traceparent` of the span that it belongs to, `null`: none; default: the one that is active here. */
  readonly parent?: string | null;
}

/** A span while its work runs. */
export interface RunningSpan {
  /** As W3C writes it; `undefined` when there is no SDK. */
  readonly traceparent: string | undefined;
  set(attributes: Attributes): void;
  /** Marks the work as failed although it throws nothing. @param type the error's code or class */
  fail(type: string): void;
}

/**
 * What the module tells of its work, in the terms of OpenTelemetry and without it (NST-21). This one is told and does nothing:
 * where the API is not installed, or telemetry is switched off.
 */
export class Telemetry {
  /** Whether anybody may ever listen. */
  readonly isOn: boolean = false;
  /** Whether anybody listens now: what is only made to be told need not be made otherwise. */
  get isHeard(): boolean {
    return false;
  }

  /** Runs the work with its span active; what it throws marks the span as failed. */
  span<T>(_options: SpanOptions, work: (span: RunningSpan) => Promise<T>): Promise<T> {
    return work(NO_SPAN);
  }

  /** As {@link span}, where another span is active; elsewhere there is none. */
  childSpan<T>(options: SpanOptions, work: (span: RunningSpan) => Promise<T>): Promise<T> {
    return this.span(options, work);
  }

  count(_counter: CounterName | UpDownCounterName, _value: number, _attributes?: Attributes): void {}

  /** @param seconds not negative */
  record(_histogram: HistogramName, _seconds: number, _attributes?: Attributes): void {}
}

export const NO_SPAN: RunningSpan = { traceparent: undefined, set: () => {}, fail: () => {} };
