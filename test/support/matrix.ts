/** True in `npm run test:matrix`, which has the tests that are too slow for `npm test`. `.ci/run` runs both. */
export const IS_MATRIX = process.env.MATRIX === '1';
