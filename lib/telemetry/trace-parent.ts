import { type SpanContext } from '@opentelemetry/api';

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** As W3C Trace Context writes it. Stored with the turn: nothing of a vendor, and no baggage, which may name a user. */
export function toTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** `null` for anything else. */
export function parseTraceparent(text: string): SpanContext | null {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text) ?? [];
  return traceId && spanId && flags ? { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true } : null;
}
