import { type CounterName, type HistogramName, type UpDownCounterName } from './instruments.js';

/**
 * Attributes of spans and measurements. They contain no messages, state or user; those of measurements contain no ids
 * either.
 */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** The options of a span. */
export interface SpanOptions {
  readonly name: string;
  /** The kind of the span. Default `internal`. */
  readonly kind?: 'internal' | 'client' | 'producer' | 'consumer';
  readonly attributes?: Attributes;
  /** The W3C `traceparent` of the parent span; `null`: none. Default: the active span. */
  readonly parent?: string | null;
}

/** A span while its work runs. */
export interface RunningSpan {
  /** The W3C `traceparent`; `undefined` without an SDK. */
  readonly traceparent: string | undefined;
  set(attributes: Attributes): void;
  /** Marks the work as failed without an error. @param type the error's code or class */
  fail(type: string): void;
}

/**
 * Reports the work of this module in OpenTelemetry's terms, without a dependency on it (NST-21). This implementation
 * does nothing: it is used if the API is not installed or telemetry is disabled.
 */
export class Telemetry {
  /** True if telemetry is enabled. */
  readonly isOn: boolean = false;
  /** True if telemetry is recorded now. If not, values that only serve telemetry need not be computed. */
  get isAnswered(): boolean {
    return false;
  }

  /** Runs the work in an active span. An error marks the span as failed. */
  span<T>(_options: SpanOptions, work: (span: RunningSpan) => Promise<T>): Promise<T> {
    return work(NO_SPAN);
  }

  /** Works like {@link span} if another span is active; otherwise creates no span. */
  childSpan<T>(options: SpanOptions, work: (span: RunningSpan) => Promise<T>): Promise<T> {
    return this.span(options, work);
  }

  count(_counter: CounterName | UpDownCounterName, _value: number, _attributes?: Attributes): void {}

  /** @param seconds not negative */
  record(_histogram: HistogramName, _seconds: number, _attributes?: Attributes): void {}
}

export const NO_SPAN: RunningSpan = { traceparent: undefined, set: () => {}, fail: () => {} };
