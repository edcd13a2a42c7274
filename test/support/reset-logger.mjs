import { ConsoleLogger, Logger } from '@nestjs/common';

/** Restores the logger of Nest, which the test files of a worker share and an earlier file may have replaced. */
Logger.overrideLogger(new ConsoleLogger());
