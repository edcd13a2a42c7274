import { ConsoleLogger, Logger } from '@nestjs/common';
import { runningApplications } from '../../lib/common/log-details.js';

/** Restores what the test files of a worker share: an earlier file may have replaced the logger of Nest. */
Logger.overrideLogger(new ConsoleLogger());
/** Forgets applications that cannot be closed: they ran when the start of another module failed. */
runningApplications.clear();
