/**
 * Health checks for `@nestjs/terminus`. Import `SessionsHealthModule`, and inject `SessionsHealthIndicator` into your
 * health controller. The indicator reports whether this process can accept and run turns, and whether lanes are stuck.
 *
 * @packageDocumentation
 * @module nestjs-agent-sessions/terminus
 */

export { type LaneHealth } from './lane-health.js';
export { SessionsHealthIndicator } from './sessions-health.indicator.js';
export { SessionsHealthModule } from './sessions-health.module.js';
export { SessionsHealthOptions } from './sessions-health.options.js';
