import fc from 'fast-check';
import { clientRequest } from './client-requests.js';
import { type FuzzRequest } from './fuzz-request.js';
import { stateRequest } from './state-requests.js';

/** Requests to all controllers. */
export const fuzzRequest: fc.Arbitrary<FuzzRequest> = fc.oneof(stateRequest, clientRequest);
