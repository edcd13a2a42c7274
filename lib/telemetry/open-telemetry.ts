import type * as OpenTelemetryApi from '@opentelemetry/api';
import {
  type Context,
  type Counter,
  type Histogram,
  type Span,
  type Tracer,
  type UpDownCounter,
  type SpanContext,
} from '@opentelemetry/api';
import { errorType } from '../common/error-trace.js';
import { optionalPeer } from '../common/load-peer.js';
import { ERROR_TYPE } from './attributes.js';
import {
  type CounterName,
  COUNTERS,
  type HistogramName,
  HISTOGRAMS,
  UP_DOWN_COUNTERS,
  type UpDownCounterName,
} from './instruments.js';
import { type Attributes, NO_SPAN, type RunningSpan, type SpanOptions, Telemetry } from './telemetry.js';

const SCOPE = 'nestjs-agent-sessions';

/** Loads telemetry with the application's OpenTelemetry API. Does nothing if the package or an SDK is missing. */
export function loadTelemetry(): Telemetry {
  const api = optionalPeer('@opentelemetry/api') as typeof OpenTelemetryApi | null;
  return api ? new OpenTelemetry(api) : new Telemetry();
}

/**
 * Measurements go to the SDK that is registered when the application is created. Spans also go to one registered later.
 */
class OpenTelemetry extends Telemetry {
  override readonly isOn = true;
  /** True if an SDK records measurements. */
  private readonly measures: boolean;
  private tracer: Tracer | undefined;
  private readonly counters: ReadonlyMap<string, Counter | UpDownCounter>;
  private readonly histograms: ReadonlyMap<string, Histogram>;

  constructor(private readonly api: typeof OpenTelemetryApi) {
    super();
    const meter = api.metrics.getMeter(SCOPE);
    this.measures = meter !== api.createNoopMeter();
    this.counters = new Map<string, Counter | UpDownCounter>([
      ...Object.entries(COUNTERS).map(([name, options]) => [name, meter.createCounter(name, options)] as const),
      ...Object.entries(UP_DOWN_COUNTERS).map(
        ([name, options]) => [name, meter.createUpDownCounter(name, options)] as const,
      ),
    ]);
    this.histograms = new Map(
      Object.entries(HISTOGRAMS).map(([name, { boundaries, ...options }]) => {
        const advice = { explicitBucketBoundaries: [...boundaries] };
        return [name, meter.createHistogram(name, { ...options, advice })];
      }),
    );
  }

  override get isAnswered(): boolean {
    return this.measures || this.findTracer() !== undefined;
  }

  override span<T>(options: SpanOptions, work: (span: RunningSpan) => Promise<T>): Promise<T> {
    const tracer = this.findTracer();
    return tracer ? this.traced(tracer, options, work) : work(NO_SPAN);
  }

  override childSpan<T>(options: SpanOptions, work: (span: RunningSpan) => Promise<T>): Promise<T> {
    return this.api.trace.getActiveSpan() ? this.span(options, work) : work(NO_SPAN);
  }

  override count(counter: CounterName | UpDownCounterName, value: number, attributes?: Attributes): void {
    this.counters.get(counter)?.add(value, attributes);
  }

  override record(histogram: HistogramName, seconds: number, attributes?: Attributes): void {
    // The store's clock may have been set back.
    this.histograms.get(histogram)?.record(Math.max(0, seconds), attributes);
  }

  /** Returns the tracer; `undefined` until an SDK that records spans is registered. */
  private findTracer(): Tracer | undefined {
    if (this.tracer) return this.tracer;
    const { trace, ProxyTracerProvider } = this.api;
    const provider = trace.getTracerProvider();
    const isEmpty = provider instanceof ProxyTracerProvider && !provider.getDelegateTracer(SCOPE);
    if (!isEmpty) this.tracer = provider.getTracer(SCOPE);
    return this.tracer;
  }

  private async traced<T>(tracer: Tracer, options: SpanOptions, work: (span: RunningSpan) => Promise<T>): Promise<T> {
    const { context, trace } = this.api;
    const parent = this.parentOf(options);
    const span = this.start(tracer, options, parent);
    try {
      return await context.with(trace.setSpan(parent, span), () => work(this.running(span)));
    } catch (error) {
      this.fail(span, errorType(error));
      throw error;
    } finally {
      span.end();
    }
  }

  private start(tracer: Tracer, { name, kind = 'internal', attributes }: SpanOptions, parent: Context): Span {
    const { SpanKind } = this.api;
    const kinds = {
      internal: SpanKind.INTERNAL,
      client: SpanKind.CLIENT,
      producer: SpanKind.PRODUCER,
      consumer: SpanKind.CONSUMER,
    };
    return tracer.startSpan(name, { kind: kinds[kind], ...(attributes ? { attributes } : {}) }, parent);
  }

  private parentOf({ parent }: SpanOptions): Context {
    const { context, ROOT_CONTEXT, trace } = this.api;
    if (parent === undefined) return context.active();
    const remote = parent === null ? null : parseTraceparent(parent);
    return remote ? trace.setSpanContext(ROOT_CONTEXT, remote) : ROOT_CONTEXT;
  }

  private running(span: Span): RunningSpan {
    const spanContext = span.spanContext();
    return {
      traceparent: this.api.isSpanContextValid(spanContext) ? toTraceparent(spanContext) : undefined,
      set: (attributes) => void span.setAttributes(attributes),
      fail: (type) => this.fail(span, type),
    };
  }

  /** Uses the type as the message, because the message of an error may contain user input. */
  private fail(span: Span, type: string): void {
    span.setAttribute(ERROR_TYPE, type);
    span.setStatus({ code: this.api.SpanStatusCode.ERROR, message: type });
  }
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/**
 * Formats a W3C `traceparent`, which is stored with the turn. Vendor state and baggage are omitted, because they may
 * identify a user.
 */
export function toTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** Parses a `traceparent`; returns `null` if it is invalid. */
export function parseTraceparent(text: string): SpanContext | null {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text) ?? [];
  return traceId && spanId && flags ? { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true } : null;
}
