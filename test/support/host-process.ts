/**
 * The process that Node sends events to, such as `warning`. The `process` of tests is a copy, which receives none of
 * them. See environment.mjs.
 */
export const { hostProcess } = globalThis as unknown as { readonly hostProcess: NodeJS.Process };
