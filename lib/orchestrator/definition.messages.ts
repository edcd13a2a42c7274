/** The refusals of orchestrators, features and other classes when they are defined, compiled or registered. */
export const definitionMessages = {
  /** @param subject what requires the root */
  missingRoot: (subject: string): string =>
    `${subject} requires SessionsModule.forRoot(), which no module imports. Add SessionsModule.forRoot({ adapter }) ` +
    "to the imports of the application's root module, once. In tests, use SessionsTestingModule instead.",

  duplicateIntent: (orchestrator: string, intent: string): string =>
    `Orchestrator ${orchestrator}: two methods have the intent ${JSON.stringify(intent)}. Intent names must be unique.`,

  severalMethods: (orchestrator: string, decorator: string, count: number): string =>
    `Orchestrator ${orchestrator} must have at most one method with ${decorator}. Found: ${count}.`,

  /** @param type the class that a provider replaces */
  missingMethod: (type: string, method: string, decorator: string): string =>
    `The provider that replaces ${type} has no method ${method}, which has ${decorator} in ${type}. Add the method ` +
    'to it.',

  twoSummarizers: (orchestrator: string): string =>
    `Orchestrator ${orchestrator}: set either compaction.summarize or a method with @Summarize(), not both.`,

  notAMemory: (): string =>
    'must be a MemoryPort, an object with recall() and remember(). A class is resolved only by the @Orchestrator ' +
    'decorator.',

  /** @param base the name of the class that routers extend */
  notARouter: (orchestrator: string, base: string): string =>
    `Orchestrator ${orchestrator}: router must be an ${base}, an object with a method route(). ` +
    'A class is resolved only by the @Orchestrator decorator.',

  /** @param intent the first intent, for the example */
  noRoute: (orchestrator: string, intent: string): string =>
    `Orchestrator ${orchestrator}: several intents require a route or a router. Add a method that returns the name ` +
    `of an intent: @Route() route(turn) { return ${JSON.stringify(intent)}; }, or set \`route\`.`,

  notAProvider: (orchestrator: string, option: string, type: string): string =>
    `${orchestrator}: its ${option} ${type} is not a provider. Add it to the providers of a module.`,

  reservedNamespace: (namespace: string, prefix: string): string =>
    `The namespace ${JSON.stringify(namespace)} is reserved for this package. ` +
    `Choose one that does not begin with ${prefix}`,

  takenNamespace: (namespace: string): string =>
    `The namespace ${JSON.stringify(namespace)} of a session manager is already used by another session manager or ` +
    'by the orchestration states. Use another namespace.',

  providedTwice: (orchestrator: string, one: string, other: string): string =>
    `The orchestrator ${orchestrator} is a provider of two modules: ${one} and ${other}. Remove it from one of them, ` +
    'and import the other module, which must export it.',

  notAnOrchestrator: (type: string, method: string, decorator: string): string =>
    `${type}.${method} has ${decorator}, but ${type} is not an orchestrator. Decorate the class with ` +
    '@Orchestrator({ name }), below decorators that replace the class.',

  requestScoped: (orchestrator: string): string =>
    `${orchestrator} is request-scoped or injects a request-scoped provider. An orchestrator must be a singleton, ` +
    'because turns outlive requests. Pass request data through the context option or a TurnContextFactory.',

  requestScopedModule: (module: string): string =>
    `The state module ${module} is request-scoped or injects a request-scoped provider. It must be a singleton, ` +
    'because it is also called outside of requests.',

  requestScopedPredicate: (predicate: string): string =>
    `The step predicate ${JSON.stringify(predicate)} is request-scoped or injects a request-scoped provider. ` +
    'It must be a singleton, because it is also called outside of requests.',
};
