import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { USER_COOKIE, userOf } from './browser.guard.js';

/** The page as `npm run build:page` writes it, beside this file in `build`. */
const FOLDER = fileURLToPath(new URL('./page', import.meta.url));

/** A year. Without an age, the user and the chats would end with the browser. */
const MAX_AGE_SECONDS = 365 * 24 * 60 * 60;

const HEADERS = {
  'Content-Security-Policy':
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  // Revalidated for each request.
  'Cache-Control': 'no-cache',
};

interface PageRequest {
  readonly headers: { readonly cookie?: string };
}

interface PageResponse {
  readonly req: PageRequest;
  setHeader(name: string, value: string): unknown;
}

/** Serves the page at `/`. A browser without a user gets one. */
export function servePage(app: NestExpressApplication): void {
  app.useStaticAssets(FOLDER, {
    setHeaders: (response: PageResponse, path: string) => {
      for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
      if (path.endsWith('.html') && userOf(response.req) === undefined) {
        // Add `Secure` behind HTTPS.
        const attributes = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${MAX_AGE_SECONDS}`;
        response.setHeader('Set-Cookie', `${USER_COOKIE}=${randomUUID()}; ${attributes}`);
      }
    },
  });
}
