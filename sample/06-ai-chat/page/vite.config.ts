import { defineConfig } from 'vite';

/** `npm run build:page` builds the page once; add `-- --watch` to build it after each change. */
export default defineConfig({
  root: import.meta.dirname,
  build: { outDir: '../../../build/sample/06-ai-chat/page', emptyOutDir: true },
});
