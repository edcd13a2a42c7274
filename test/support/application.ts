import { type INestApplicationContext, Module, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Intent, Orchestrator, type TurnContext } from 'nestjs-agent-sessions';

/** A started application of one module, without HTTP. Close it. */
export async function startApplication(metadata: ModuleMetadata): Promise<INestApplicationContext> {
  @Module(metadata)
  class AppModule {}

  // Without abortOnError a mistake would end the test process instead of rejecting.
  return NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
}

/** The smallest orchestrator: it repeats what it hears. */
@Orchestrator({ name: 'echo' })
export class Echo {
  @Intent()
  say({ input }: TurnContext): string {
    return `You said: ${input.text}`;
  }
}
