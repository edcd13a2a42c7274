import { type RunningService } from './service.js';
import { SERVICES, startService, wantedServices } from './services.js';

const running: RunningService[] = [];

/** Starts every server that the tests need, and sets environment variables with their addresses. */
export async function startServices(): Promise<void> {
  await Promise.all(
    wantedServices().map(async (service) => {
      const started = await startService(service);
      running.push(started);
      process.env[service.variable] = started.url;
    }),
  );
}

export async function stopServices(): Promise<void> {
  await Promise.all(running.splice(0).map((service) => service.stop()));
  const skipped = SERVICES.filter((service) => !wantedServices().includes(service));
  for (const { name } of skipped) console.warn(`SKIPPED EVERY TEST OF ${name.toUpperCase()}, AS SKIP_SERVICES SAYS.`);
}

export default startServices;
