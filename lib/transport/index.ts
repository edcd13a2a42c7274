export { CurrentTurn, type CurrentTurnOptions } from './current-turn.decorator.js';
export { type IdSource } from './id-source.js';
export { type AgentOfState, OrchestrationState } from './orchestration-state.decorator.js';
export { type Principal, type PrincipalResolver, signedInUser } from './principal.js';
export {
  AllowAnonymousSession,
  CurrentSession,
  SessionId,
  UseSession,
  type UseSessionOptions,
} from './session.decorators.js';
export { SessionGuard } from './session.guard.js';
export { type SessionsErrorBody } from './sessions-error-body.js';
export { SessionsExceptionFilter } from './sessions-exception.filter.js';
export { ToolUseInterceptor } from './tool-use.interceptor.js';
export { type RequiredTool, RequireTool } from './tool.decorators.js';
export { ToolGuard } from './tool.guard.js';
export { type IdPlace, type SourceKind } from './transport.js';
export { SessionIdMissingError, UnauthenticatedError } from './transport.errors.js';
