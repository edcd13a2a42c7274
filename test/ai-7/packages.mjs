/** The packages of this folder, for programs that Node runs without a compiler. */
export * from 'ai';
export * from '@ai-sdk/openai-compatible';
