export { stopServices as default } from './global-setup.js';
