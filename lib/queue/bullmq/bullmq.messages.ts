/** The refusals of `bullmqQueue`. */
export const bullmqMessages = {
  backendsNeedBullmq6: (): string =>
    'bullmqQueue: backendFactory requires BullMQ 6, because BullMQ 5 runs on Redis only. Run: npm install bullmq@6. ' +
    'Or remove backendFactory, and pass a connection to Redis.',

  noConnection: (): string =>
    'bullmqQueue: connection is missing. Pass it, or import BullModule.forRoot({ connection }) of @nestjs/bullmq in ' +
    'the application.',

  tooEarly: (): string => 'bullmqQueue: the queue must not be used before the application has started.',

  /** @param connection the name of the option that has the connection */
  stringNumbers: (connection: string): string =>
    `${connection}: stringNumbers must not be true, because BullMQ reads integers. Received: true. Pass a connection ` +
    'without the option.',
};
