export { SweepOptions } from './sweep.options.js';
