/** The cookie with the signed-in user of the page. */
export const USER_COOKIE = 'support_desk_user';
/** The cookie with the conversation of the page. */
export const SESSION_COOKIE = 'support_desk_session';

/** Milliseconds of a year. Without an age, the user and the conversations would end with the browser. */
const MAX_AGE_MS = 365 * 24 * 60 * 60 * 1000;

/** The part of Express' response that sets cookies. */
export interface CookieResponse {
  cookie(name: string, value: string, options: object): unknown;
}

/** Scripts cannot read these cookies, and other sites do not send them. Add `secure: true` behind HTTPS. */
export function setCookie(response: CookieResponse, name: string, value: string): void {
  response.cookie(name, value, { httpOnly: true, sameSite: 'strict', maxAge: MAX_AGE_MS });
}

/** Parses cookies: the part of `cookie-parser` that this sample needs. */
export function cookieOf(headers: Readonly<Record<string, string | string[] | undefined>>, name: string): string {
  const pairs = String(headers.cookie ?? '').split(/; */);
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? '';
}
