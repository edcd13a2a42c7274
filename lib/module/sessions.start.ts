import {
  Global,
  Injectable,
  Module,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { SessionsLifecycle } from './sessions.lifecycle.js';

/**
 * Starts the parts before hooks of the application run (FIX-71), because Nest calls the hooks of global modules first.
 * Any module can then submit turns in `onModuleInit`, and wait for turns in `onApplicationBootstrap`.
 */
@Injectable()
class SessionsStart implements OnModuleInit, OnApplicationBootstrap {
  constructor(private readonly moduleRef: ModuleRef) {}

  onModuleInit(): Promise<void> {
    return this.lifecycle.initialize();
  }

  onApplicationBootstrap(): Promise<void> {
    return this.lifecycle.start();
  }

  private get lifecycle(): SessionsLifecycle {
    return this.moduleRef.get(SessionsLifecycle, { strict: false });
  }
}

@Global()
@Module({ providers: [SessionsStart] })
export class SessionsStartModule {}

/**
 * Stops the intake before the destroy hooks of global modules. Nest calls those last, also that of `SessionsModule` with
 * `isGlobal`, so this module is not global.
 */
@Injectable()
class SessionsStop implements OnModuleDestroy {
  constructor(private readonly moduleRef: ModuleRef) {}

  onModuleDestroy(): Promise<void> {
    return this.moduleRef.get(SessionsLifecycle, { strict: false }).onModuleDestroy();
  }
}

@Module({ providers: [SessionsStop] })
export class SessionsStopModule {}
