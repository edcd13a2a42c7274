/** Starts a Nest application once, and reports the time of each phase to its parent process. */
import 'reflect-metadata';

/** The times of the phases, in milliseconds. */
export interface StartTimes {
  /** Until Nest is loaded. */
  readonly nest: number;
  /** Until this package is loaded, with its dependencies. */
  readonly sessions: number;
  /** From there until the application has started. */
  readonly create: number;
}

const withSessions = process.argv[2] === 'sessions';
const beganAt = performance.now();
const { Module } = await import('@nestjs/common');
const { NestFactory } = await import('@nestjs/core');
const nestAt = performance.now();
const { SessionsModule } = withSessions ? await import('nestjs-agent-sessions') : {};
const sessionsAt = performance.now();

@Module({ imports: SessionsModule ? [SessionsModule.forRoot()] : [] })
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const times: StartTimes = {
  nest: nestAt - beganAt,
  sessions: sessionsAt - nestAt,
  create: performance.now() - sessionsAt,
};
process.send?.(times);
await app.close();
process.disconnect?.();
