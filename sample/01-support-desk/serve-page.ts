import { fileURLToPath } from 'node:url';
import { type NestExpressApplication } from '@nestjs/platform-express';

/** Not compiled, so it stays where it is written; this file runs from `build/sample/01-support-desk`. */
const FOLDER = fileURLToPath(new URL('../../../sample/01-support-desk/public', import.meta.url));

const HEADERS = {
  'Content-Security-Policy': "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  // Looked for each time: a new version of the page never runs with an old module of it.
  'Cache-Control': 'no-cache',
};

/** The chat page, at `/`. */
export function servePage(app: NestExpressApplication): void {
  app.useStaticAssets(FOLDER, {
    setHeaders: (response: { setHeader(name: string, value: string): unknown }) => {
      for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    },
  });
}
