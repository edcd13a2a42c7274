/** The messages about `SessionsModule`, its options and its start, and about `createOrchestrationStateManager`. */
export const moduleMessages = {
  /** @param importers the modules that import a `forRoot` without `isGlobal` */
  severalRoots: (count: number, importers: readonly string[]): string => {
    const places = importers.length === 0 ? '' : `, for ${importers.join(', ')}`;
    return (
      `SessionsModule.forRoot() is called ${count} times in one application${places}. Call it once, in the root ` +
      'module. Other modules need only SessionsModule.forFeature([...]), or SessionsModule to inject its services. ' +
      'In tests, SessionsTestingModule already calls it.'
    );
  },

  unknownRole: (roles: readonly string[], received: string): string =>
    `SessionsModule: The option role must be one of ${roles.join(', ')}. Received: ${received}.`,

  /** @param ways how many of the three ways were given */
  notOneWay: (ways: number): string =>
    `SessionsModule.forRootAsync has ${ways === 0 ? 'none' : 'several'} of useFactory, useClass and useExisting. ` +
    'Add exactly one of them.',

  notAFactory: (name: string, received: string): string =>
    `SessionsModule.forRootAsync: ${name} must be an object with the method createSessionsOptions(). Received: ` +
    `${received}. Check the provider of ${name}.`,

  noOptions: (): string =>
    'SessionsModule.forRootAsync: The factory returned undefined. Expected an object, such as ' +
    '{ adapter: typeormAdapter({ ... }) }. Return {} to use the defaults.',

  undefinedAdapter: (): string =>
    'SessionsModule: The option adapter is undefined. Pass an adapter, for example typeormAdapter({ ... }). ' +
    'To store sessions in memory, pass memoryAdapter() or omit the option.',

  /** @param option the option of the manager that does the same */
  misplacedOption: (key: string, option: string): string =>
    `createOrchestrationStateManager: options.cleanup.${key} is not a known key. Use options.${option}.`,

  /** @param wrapper the code of the wrapper */
  unwrappedClient: (client: string, wrapper: string): string =>
    `createOrchestrationStateManager: options.storageProvider is a client of ${client}, which takes the time to live in ` +
    `another form. Pass a wrapper: ${wrapper}.`,

  notAStateModule: (index: number): string =>
    `SessionsModule.forFeature: stateModules[${index}] must be a class with @SessionStateModule().`,

  misplacedStateModule: (name: string): string =>
    `SessionsModule.forFeature: ${name} is a state module. Add it to forFeature({ stateModules: [${name}] }).`,

  unknownItem: (index: number, isUndefined: boolean): string => {
    const what = isUndefined ? 'undefined (check for a circular import)' : 'not an orchestrator';
    return (
      `SessionsModule.forFeature: item ${index} is ${what}. Expected a class with @Orchestrator(), or a definition ` +
      'created with defineOrchestrator(), defineStepPlan() or defineSessionManager().'
    );
  },

  asyncOptionsCure: (): string => 'Return the options of forRoot from useFactory.',

  concurrencyOfQueue: (given: number): string =>
    `SessionsModule: The option turns.concurrency has no effect on turns.queue. Received: ${given}. Set it in the queue, ` +
    `for example bullmqQueue({ concurrency: ${given} }), and remove turns.concurrency.`,

  workWithoutOrchestrator: (): string =>
    "SessionsModule: role 'work' requires an orchestrator. Add one to SessionsModule.forFeature([...]).",

  noAdapter: (): string =>
    'No adapter is configured: sessions and turns are stored in memory and lost when this process exits. ' +
    'Add a durable adapter to SessionsModule.forRoot({ adapter }).',

  volatileStore: (): string =>
    'The store is the memory of this process: sessions are lost on restart. ' +
    'To keep them, use a database, for example typeormAdapter({ ... }).',

  volatileStoreWithQueue: (): string =>
    'Turns are queued with turns.queue, but the store is the memory of this process: other processes do not see its sessions. ' +
    'Use a database or Redis as the store.',

  localQueue: (): string =>
    'The store can be shared but turns are queued in this process. Order and mutual exclusion hold across processes, ' +
    'but work is not distributed. Use a BullMQ queue (turns.queue) to scale.',
};
