/** Lua and SQL files, which the build converts to modules; see text-modules.js. */
declare module '*.lua.js' {
  const text: string;
  export default text;
}

declare module '*.sql.js' {
  const text: string;
  export default text;
}
