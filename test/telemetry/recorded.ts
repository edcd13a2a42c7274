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

/** What the SDK has exported since the test began. */
export interface Recorded {
  readonly spans: () => readonly ReadableSpan[];
  /** What a metric has come to, by its attributes. */
  readonly points: (metric: string) => Promise<readonly Point[]>;
  /** All that was exported but ids of spans and times, as text. */
  readonly text: () => Promise<string>;
  /** The same of metrics alone. */
  readonly metricText: () => Promise<string>;
}

export interface Point {
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Of histograms how many were recorded. */
  readonly value: number;
  /** Of histograms; else 0. */
  readonly sum: number;
  readonly unit: string;
}

/** Sets the SDK up, as an application does before it starts; each test begins with nothing. */
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

/** The spans of a trace as lines, each below its parent; `!` and what failed. Those of one parent in the order of their start. */
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

/** Without what is asked again and again while somebody waits, and what belongs to no turn. */
export function withoutPolls(spans: readonly ReadableSpan[]): readonly ReadableSpan[] {
  return spans.filter(({ name }) => !['turns.renew', 'turns.get', 'turns.claim'].includes(name));
}
