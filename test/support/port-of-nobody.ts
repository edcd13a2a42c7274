/** A port of this machine without a listener. */
export { freePort as portOfNobody } from './services/server-process.js';
