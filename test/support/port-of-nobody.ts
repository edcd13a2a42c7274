/** A port of this machine on which nobody listens. */
export { freePort as portOfNobody } from './services/server-process.js';
