import { defineConfig } from 'vite';

/** `npm run build:page` builds the page once; `npx vite build --watch --config sample/06-ai-chat/page/vite.config.ts` after each change. */
export default defineConfig({
  root: import.meta.dirname,
  build: { outDir: '../../../build/sample/06-ai-chat/page', emptyOutDir: true },
});
