const AUTHENTICATE =
  'Replace it with a guard that authenticates your users and sets request.user to an object with a string id.';

/** The refusals and warnings about handlers, their guards and decorators, and the requests that they serve. */
export const transportMessages = {
  /** @param asks what the handler uses, as in `asks for @CurrentSession()` */
  guardDidNotRun: (handler: string, asks: string): string =>
    `${handler} ${asks}, but SessionGuard did not run. Add @UseSession() and SessionGuard, for example ` +
    '@UseGuards(AuthGuard, SessionGuard).',

  /** @param asks what the handler uses, as in `asks for @CurrentTurn()` */
  noSession: (handler: string, asks: string, guards: string): string =>
    `${handler} ${asks}, but the request has no session. Add a required @UseSession() and SessionGuard, for ` +
    `example @UseGuards(${guards}).`,

  noSessionMark: (handler: string, decorator: string): string =>
    `${handler} has ${decorator}, but no @UseSession(), so no session is loaded for it. Add @UseSession() to the ` +
    'method or to the class, and SessionGuard to @UseGuards(), after the guard that sets the user.',

  missingGuard: (handler: string, decorator: string, guard: string): string =>
    `${handler} has ${decorator}, but ${guard} does not run for it. Add ${guard}, or a class that extends it, to ` +
    '@UseGuards() of the class or of the method, or register it as a global guard. On a method, @UseGuards() must be ' +
    'above decorators that wrap the method, because they lose it.',

  fieldWithoutGuards: (handler: string, decorator: string): string =>
    `${handler} has ${decorator}, but GraphQLModule runs no guards for fields below a query. Set its option ` +
    "fieldResolverEnhancers: ['guards', 'interceptors'], or move the decorator to the query.",

  streamedTool: (handler: string, decorator: string): string =>
    `${handler} has ${decorator} and @Sse(), but Nest would send the status 200 before the plan is checked. Remove ` +
    `${decorator} from it, and from its class, and call OrchestrationService.admitTool() in the handler before it ` +
    'returns the stream.',

  noToolGuard: (handler: string): string =>
    `${handler} requires a tool, but ToolGuard did not run. Add @UseGuards(SessionGuard, ToolGuard) to it.`,

  noPlan: (handler: string, tool: string): string =>
    `${handler} requires the tool ${tool}, but its agent has no plan in this process. Add the ` +
    'agent to SessionsModule.forFeature([...]).',

  /** @param place the class or the method that is decorated */
  wrongSource: (place: string, decorator: string, kinds: readonly string[], received: string): string =>
    `${place}: the option from of ${decorator} must be one of ${kinds.map((kind) => `${kind}:NAME`).join(', ')}, ` +
    `where data is the body or payload, or a function. Received: ${received}.`,

  /** @param subject what the transport calls its requests */
  missingSource: (handler: string, source: string, subject: string, kinds: readonly string[]): string =>
    `${handler} reads an id from ${source}, which ${subject} does not have. Allowed: ${kinds.join(', ')}.`,

  /** @param place where the session id is expected */
  routeParameter: (handler: string, place: string, parameter: string): string =>
    `${handler}: a request has no session id at ${place}. If the parameter ${parameter} of the route is the session id, ` +
    `use @UseSession({ from: 'param:${parameter}' }). This warning is logged once.`,

  otherOwner: (handler: string): string =>
    `${handler}: the session of a request belongs to another user or workspace, so that the client gets 404. If it is their own, ` +
    "create it with the id and the workspace of the request's user. This warning is logged once.",

  cookiesCure: (): string =>
    'Cookies require a parser: app.use(cookieParser()) from cookie-parser, or @fastify/cookie with Fastify.',

  unknownContext: (type: string, known: readonly string[]): string =>
    `Sessions do not support execution contexts of type ${JSON.stringify(type)}. Allowed: ${known.join(', ')}.`,

  userFieldNotAString: (field: string): string =>
    `SessionsModule: The signed-in user's ${field} must be a string. Convert it, or map the user with the option ` +
    'principal.',

  unauthenticated: (handler: string, advice: string): string =>
    `${handler}: the request is not authenticated. ${advice} This warning is logged once.`,

  messageUserCure: (): string => 'Microservice messages have no user. Set the option principal to identify the sender.',

  /** @param userAt the place of the user in the request */
  userIdCure: (userAt: string): string =>
    `The user at ${userAt} has no id. Map the user with the option principal, for example: ` +
    'principal: (context) => ({ userId: context.switchToHttp().getRequest().user.userId }).',

  /** @param userAt as for `userIdCure` */
  userCure: (userAt: string): string =>
    `No user at ${userAt}. A guard that authenticates the request must set the user there, for example { id: 'ann' }, ` +
    'before SessionGuard runs: @UseGuards(AuthGuard, SessionGuard), or globally. For the controllers of this package, ' +
    'add the guard to their option guards.',

  singleUserInProduction: (): string =>
    `SingleUserGuard lets every request in as the same user, and NODE_ENV is "production". ${AUTHENTICATE}`,

  singleUserWithoutHttp: (type: string): string =>
    `SingleUserGuard supports only HTTP requests. Received: ${type}. ${AUTHENTICATE}`,

  sharedCache: (routes: readonly string[]): string =>
    `A global CacheInterceptor stores the responses of ${routes.join(', ')} by URL, but each session has its own ` +
    'response: a user may receive that of another user. Remove the global interceptor, and add CacheInterceptor to ' +
    'controllers without @UseSession().',
};
