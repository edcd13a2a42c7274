import { INTENT, ITERATION, OPERATION, SIGNAL, STEP, TOOL, TOOL_CALL } from './attributes.js';
import { type SpanOptions } from './telemetry.js';

/** Spans of work inside an attempt. Names of steps, intents, tools and signals are chosen by developers. */

export function intentSpan(intent: string, iteration: number): SpanOptions {
  return { name: `intent ${intent}`, attributes: { [INTENT]: intent, [ITERATION]: iteration } };
}

/** @param role `route` or `evaluate` */
export function decisionSpan(role: string, iteration: number): SpanOptions {
  return { name: role, attributes: { [ITERATION]: iteration } };
}

export function stepSpan(name: string): SpanOptions {
  return { name: `step ${name}`, attributes: { [STEP]: name } };
}

export function toolSpan(tool: string, callId: string): SpanOptions {
  return {
    name: `execute_tool ${tool}`,
    attributes: { [OPERATION]: 'execute_tool', [TOOL]: tool, [TOOL_CALL]: callId },
  };
}

export function waitSpan(signal: string): SpanOptions {
  return { name: `wait ${signal}`, attributes: { [SIGNAL]: signal } };
}
