/**
 * Health checks for `@nestjs/terminus`.
 * @module nestjs-agent-sessions/terminus
 */

export { type LaneHealth } from './lane-health.js';
export { SessionsHealthIndicator } from './sessions-health.indicator.js';
export { SessionsHealthModule } from './sessions-health.module.js';
export { SessionsHealthOptions } from './sessions-health.options.js';
