export { type LaneHealth } from './lane-health.js';
export { SessionsHealthIndicator } from './sessions-health.indicator.js';
export { SessionsHealthModule } from './sessions-health.module.js';
export { SessionsHealthOptions } from './sessions-health.options.js';
