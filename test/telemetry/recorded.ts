import { context, metrics, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

/** The telemetry that the SDK exported since the start of the test. */
export interface Recorded {
  readonly spans: () => readonly ReadableSpan[];
  /** Returns the data points of a metric. */
  readonly points: (metric: string) => Promise<readonly Point[]>;
  /** Returns all exported data except span ids and times, as text. */
  readonly text: () => Promise<string>;
  /** Returns the exported metrics as text. */
  readonly metricText: () => Promise<string>;
}

export interface Point {
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The value, or the count of a histogram. */
  readonly value: number;
  /** The sum of a histogram, otherwise 0. */
  readonly sum: number;
  readonly unit: string;
}

/** Sets up the SDK like an application before its start, and clears it for each test. */
export function recordTelemetry(): Recorded {
  const traces = new InMemorySpanExporter();
  const measured = new InMemoryMetricExporter(AggregationTemporality.DELTA);
  const reader = new PeriodicExportingMetricReader({ exporter: measured, exportIntervalMillis: 3_600_000 });

  const meters = new MeterProvider({ readers: [reader] });
  const exported = async () => {
    await reader.forceFlush();
    return measured
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics)
      .flatMap(({ metrics: all }) => all);
  };

  const metricText = async (): Promise<string> =>
    JSON.stringify(
      (await exported()).map(({ descriptor, dataPoints }) => [
        descriptor,
        dataPoints.map(({ attributes }) => attributes),
      ]),
    );

  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(traces)] }));
    metrics.setGlobalMeterProvider(meters);
  });
  beforeEach(async () => {
    await reader.forceFlush();
    measured.reset();
    traces.reset();
  });
  afterAll(async () => {
    await meters.shutdown();
    trace.disable();
    context.disable();
    metrics.disable();
  });

  return {
    spans: () => traces.getFinishedSpans(),
    points: async (metric) => {
      const points = new Map<string, Point>();
      for (const { descriptor, dataPoints } of (await exported()).filter(
        ({ descriptor: { name } }) => name === metric,
      )) {
        for (const { attributes, value } of dataPoints as DataPoint<number | Histogram>[]) {
          const key = JSON.stringify(attributes);
          const { value: count, sum } = points.get(key) ?? { value: 0, sum: 0 };
          const added = typeof value === 'number' ? { count: value, sum: 0 } : value;
          points.set(key, {
            attributes,
            value: count + added.count,
            sum: sum + (added.sum ?? 0),
            unit: descriptor.unit,
          });
        }
      }
      return [...points.values()];
    },
    text: async () =>
      JSON.stringify(
        traces.getFinishedSpans().map(({ name, attributes, status, events }) => [name, attributes, status, events]),
      ) + (await metricText()),
    metricText,
  };
}

/** Renders spans as indented lines below their parents, in start order. `!` precedes the error of a failed span. */
export function treeOf(spans: readonly ReadableSpan[], parent?: ReadableSpan, depth = 0): string[] {
  const isRoot = (span: ReadableSpan): boolean =>
    !spans.some((other) => other.spanContext().spanId === span.parentSpanContext?.spanId);
  return spans
    .filter((span) => (parent ? span.parentSpanContext?.spanId === parent.spanContext().spanId : isRoot(span)))
    .sort((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])
    .flatMap((span) => {
      const failed = span.status.code === SpanStatusCode.ERROR ? ` ! ${span.status.message}` : '';
      return [`${'  '.repeat(depth)}${span.name}${failed}`, ...treeOf(spans, span, depth + 1)];
    });
}

/** Removes polling and spans that belong to no turn. */
export function withoutPolls(spans: readonly ReadableSpan[]): readonly ReadableSpan[] {
  return spans.filter(({ name }) => !['turns.renew', 'turns.get', 'turns.claim'].includes(name));
}
