import { Global, Injectable, Module, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
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
