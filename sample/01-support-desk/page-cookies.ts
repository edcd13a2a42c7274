/** Names who is signed in on the page. */
export const USER_COOKIE = 'support_desk_user';
/** Names the page's conversation. */
export const SESSION_COOKIE = 'support_desk_session';

/** The part of Express' response that sets cookies. */
export interface CookieResponse {
  cookie(name: string, value: string, options: object): unknown;
}

/** No script reads it, no other site sends it, and no address has it. Behind HTTPS add `secure: true`. */
export function setCookie(response: CookieResponse, name: string, value: string): void {
  response.cookie(name, value, { httpOnly: true, sameSite: 'strict' });
}

/** What `cookie-parser` does, as far as it is needed here. */
export function cookieOf(headers: Readonly<Record<string, string | string[] | undefined>>, name: string): string {
  const pairs = String(headers.cookie ?? '').split(/; */);
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? '';
}
