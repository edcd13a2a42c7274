import { type INestApplicationContext, Module, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Intent, Orchestrator, type TurnContext } from 'nestjs-agent-sessions';

/** Starts an application of one module, without HTTP. The caller closes it. */
export async function startApplication(metadata: ModuleMetadata): Promise<INestApplicationContext> {
  @Module(metadata)
  class AppModule {}

  // With abortOnError, a mistake would end the test process instead of rejecting.
  return NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
}

/** A minimal orchestrator that echoes its input. */
@Orchestrator({ name: 'echo' })
export class Echo {
  @Intent()
  say({ input }: TurnContext): string {
    return `You said: ${input.text}`;
  }
}
