import { COMMON_FUNCTIONS } from './common-functions.js';

/** Every function, in the order in which they can be created. */
export const POSTGRES_FUNCTIONS: readonly string[] = [...COMMON_FUNCTIONS];
