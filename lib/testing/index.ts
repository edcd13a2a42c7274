export { describeSessionsAdapter } from './conformance/describe-sessions-adapter.js';
export { type ConformanceTarget } from './conformance/target.js';
