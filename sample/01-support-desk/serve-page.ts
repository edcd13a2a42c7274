import { fileURLToPath } from 'node:url';
import { type NestExpressApplication } from '@nestjs/platform-express';

/** The source folder of the page, which is not compiled. This file runs from `build/sample/01-support-desk`. */
const FOLDER = fileURLToPath(new URL('../../../sample/01-support-desk/public', import.meta.url));

const HEADERS = {
  'Content-Security-Policy': "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  // Revalidated for each request, so that a new page never runs with an old module.
  'Cache-Control': 'no-cache',
};

/** Serves the chat page at `/`. */
export function servePage(app: NestExpressApplication): void {
  app.useStaticAssets(FOLDER, {
    setHeaders: (response: { setHeader(name: string, value: string): unknown }) => {
      for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    },
  });
}
