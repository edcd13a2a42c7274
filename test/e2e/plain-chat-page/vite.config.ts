import { join } from 'node:path';
import { defineConfig, type Plugin } from 'vite';

const AI_7 = join(import.meta.dirname, '../../ai-7/ai.ts');

/** Resolves the AI SDK as a file of test/ai-7 does. */
const withAi7: Plugin = {
  name: 'with-ai-7',
  enforce: 'pre',
  resolveId(id) {
    return id === 'ai' || id === '@ai-sdk/react' ? this.resolve(id, AI_7, { skipSelf: true }) : null;
  },
};

/** Builds the page with the version of the AI SDK that the mode names: `ai-6` or `ai-7`. */
export default defineConfig(({ mode }) => ({
  root: import.meta.dirname,
  plugins: mode === 'ai-7' ? [withAi7] : [],
  build: { outDir: `../../../build/test/e2e/plain-chat-page/${mode}`, emptyOutDir: true },
}));
